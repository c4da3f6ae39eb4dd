/** What the bot does when Discord refuses, archives or deletes. Spec: DI-17, DI-60..DI-66 in specs/discord.md. */
import { assert, describe } from "@effect/vitest"
import { PermissionFlagsBits } from "discord.js"
import { Deferred, Effect, Exit, Metric, Scope, Stream } from "effect"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import * as Bot from "../../packages/discord/src/Bot.ts"
import { check } from "../../packages/discord/src/Bot.ts"
import * as Outbox from "../../packages/discord/src/outbox/Outbox.ts"
import * as Sender from "../../packages/discord/src/live/Sender.ts"
import { Discord, layer as discordLayer } from "../../packages/discord/src/wire/Discord.ts"
import { failure, finish, says, ScriptedModel, streams, textParts } from "../support/ScriptedModel.ts"
import { waitingFor } from "../support/Waiting.ts"
import * as People from "./support/People.ts"
import * as Served from "./support/ServedBot.ts"
import type { Channel } from "./support/World.ts"

type Setting = Effect.Effect.Success<typeof Served.setting>

const threadOf = (at: Setting, answer = "Hello.", channel: Channel = at.general) =>
  Effect.gen(function* () {
    yield* at.model.answer(says(answer))
    const message = People.say(at.world, at.ann, channel, `<@${at.world.bot.id}> Hi`)
    const thread = yield* Served.threadOf(at, message)
    yield* Served.settled(at, thread)
    yield* at.model.request
    return thread ?? (yield* Effect.dieMessage("there is no thread"))
  })

const has = ({ discord }: Setting, thread: Channel, text: string) =>
  discord.when(text, () => Served.texts(thread).includes(text))

describe("care", () => {
  Served.law("DI-17: an answer grows by whole lines while it is written, in one message", () =>
    Effect.gen(function* () {
      const at = yield* Served.setting
      const gate = yield* Effect.makeLatch()
      const [start, first, rest, ...end] = textParts("t", "One line.\nA second", " line.")
      if (start === undefined || first === undefined || rest === undefined) return assert.fail("there are four parts")
      const later = Stream.unwrap(Effect.as(gate.await, streams(rest, ...end, finish())))
      yield* at.model.answer(Stream.concat(streams(start, first), later))
      const message = People.say(at.world, at.ann, at.general, `<@${at.world.bot.id}> Hi`)
      const thread = yield* Served.threadOf(at, message)
      yield* Served.shows(at, thread, ["One line."])
      yield* gate.open
      yield* Served.shows(at, thread, ["One line.\nA second line."])
      assert.deepStrictEqual(
        thread?.messages.map(({ revisions }) => revisions.at(-1)),
        ["One line.\nA second line."]
      )
    })
  )

  Served.law("DI-18: a run that fails says so with its reason, and marks its prompt", () =>
    Effect.gen(function* () {
      const at = yield* Served.setting
      const message = People.say(at.world, at.ann, at.general, `<@${at.world.bot.id}> Hi`)
      yield* at.model.answer(Stream.fail(failure("the model is down")))
      const thread = yield* Served.threadOf(at, message)
      yield* at.discord.when("a notice", () =>
        Served.texts(thread).some((text) => /^❌ Failed: .*model is down/.test(text))
      )
      yield* at.discord.when("a mark", () => (message.reactions.get("❌")?.size ?? 0) > 0)
    })
  )

  Served.law("DI-620: a run whose answer is not whole says so after the answer, and marks its prompt", () =>
    Effect.gen(function* () {
      const at = yield* Served.setting
      const message = People.say(at.world, at.ann, at.general, `<@${at.world.bot.id}> Hi`)
      yield* at.model.answer(streams(...textParts("t", "Half of it"), finish("length")))
      const thread = yield* Served.threadOf(at, message)
      const sentence = "⚠️ The answer was cut off at the model's output limit, after 5 tokens."
      yield* at.discord.when("a notice", () => Served.texts(thread).includes(sentence))
      yield* at.discord.when("a mark", () => (message.reactions.get("⚠️")?.size ?? 0) > 0)
      assert.deepStrictEqual(Served.texts(thread), ["Half of it", sentence])
    })
  )

  Served.law("DI-61, DI-66: a channel that refuses holds no other up, /status says so, and it goes on later", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const { general, world } = place.discord
      const closed = People.makeChannel(world, "closed")
      const options = Served.options(place)
      const channel = { folder: place.folder, administer: { everyone: true } }
      yield* Served.start(place, {
        ...options,
        settings: { channels: { [general.id]: channel, [closed.id]: channel } }
      })
      const at = { ...place, ...place.discord, ann: People.join(world, "ann"), model: yield* ScriptedModel }
      const [refused, open] = [yield* threadOf(at, "Hello.", closed), yield* threadOf(at)]
      People.overwrite(world, closed, { deny: PermissionFlagsBits.SendMessagesInThreads })
      yield* at.model.answer(says("Not yet."))
      People.say(world, at.ann, refused, "To the first")
      yield* at.discord.when("a refusal", ({ asked }) =>
        asked.some(({ path, status }) => status === 403 && path.includes(`${refused.id}/messages`))
      )
      yield* at.model.answer(says("At once."))
      People.say(world, at.ann, open, "To the second")
      yield* has(at, open, "At once.")
      assert.notInclude(Served.texts(refused), "Not yet.")
      const status = People.slash(world, at.ann, closed, "status")
      yield* at.discord.when("a status", () => status.original !== undefined)
      assert.match(status.original?.content ?? "", new RegExp(`⚠️ <#${refused.id}> .*50013`))
      People.overwrite(world, closed, {})
      yield* has(at, refused, "Not yet.")
    })
  )

  Served.law("DI-62: a message that was deleted is not posted again, and a deleted thread gets nothing more", () =>
    Effect.gen(function* () {
      const at = yield* Served.setting
      const [thread, other] = [yield* threadOf(at), yield* threadOf(at)]
      const [answer] = thread.messages
      if (answer === undefined) return assert.fail("there is no answer")
      People.remove(at.world, thread, answer)
      yield* at.model.answer(says("Next."))
      People.say(at.world, at.ann, thread, "More")
      yield* has(at, thread, "Next.")
      assert.notInclude(Served.texts(thread), "Hello.")
      yield* at.model.answer(says("For nobody."))
      const last = People.say(at.world, at.ann, thread, "And more")
      yield* at.discord.when("it is admitted", () => last.reactions.size > 0)
      People.removeChannel(at.world, thread)
      yield* at.model.answer(says("Elsewhere."))
      People.say(at.world, at.ann, other, "Still there?")
      yield* has(at, other, "Elsewhere.")
    })
  )

  Served.law("DI-63: an archived thread is opened again for what it has to show", () =>
    Effect.gen(function* () {
      const at = yield* Served.setting
      const thread = yield* threadOf(at)
      const gate = yield* Effect.makeLatch()
      yield* at.model.answer(Stream.unwrap(Effect.as(gate.await, says("Late."))))
      People.say(at.world, at.ann, thread, "Take your time")
      yield* at.model.request
      People.archive(at.world, thread)
      yield* gate.open
      yield* has(at, thread, "Late.")
      assert.isFalse(thread.thread?.archived)
    })
  )

  Served.law("DI-65: a bot that is stopped finishes the request in hand and records its end", () =>
    Effect.gen(function* () {
      const at = yield* Served.place
      const { general, world } = at.discord
      const model = yield* ScriptedModel
      const scope = yield* Scope.make()
      yield* Scope.extend(Served.start(at), scope)
      world.faults.scripted.push({ method: "POST", path: /\d\/messages$/, fault: { kind: "late", millis: 300 } })
      const message = People.say(world, People.join(world, "ann"), general, `<@${world.bot.id}> Hi`)
      const isInHand = () => world.asked.some(({ fault, status }) => fault === "late" && status === 0)
      yield* model.answer(says("In hand."))
      yield* at.discord.when("a request in hand", isInHand)
      yield* Scope.close(scope, Exit.void)
      assert.isFalse(isInHand())
      const outbox = yield* Outbox.make({ filename: Served.options(at).outbox })
      const [post] = world.channels.get(message.id)?.messages ?? []
      assert.strictEqual(yield* outbox.newest(message.id), post?.id)
    })
  )

  Served.law("DI-40: a thread whose message was posted before a crash is opened by the next start", () =>
    Effect.gen(function* () {
      const at = yield* Served.place
      const { general, world } = at.discord
      const model = yield* ScriptedModel
      const ann = People.join(world, "ann")
      const scope = yield* Scope.make()
      yield* Scope.extend(Served.start(at), scope)
      const fault = { kind: "failed", status: 500 } as const
      world.faults.scripted.push({ method: "POST", path: /\/threads$/, fault, times: 100 })
      People.slash(world, ann, general, "ask", { text: "Are you there?" })
      yield* at.discord.when("a thread that is not opened", ({ asked }) =>
        asked.some(({ path, status }) => path.endsWith("/threads") && status === 500)
      )
      yield* Scope.close(scope, Exit.void)
      world.faults.scripted.splice(0)
      yield* model.answer(says("Yes."))
      yield* Served.start(at)
      const [begun] = general.messages
      const thread = yield* Served.threadOf(at, begun ?? (yield* Effect.dieMessage("there is no message")))
      yield* Served.shows(at, thread, ["Yes."])
      assert.strictEqual(general.messages.length, 1)
    })
  )

  Served.law("DI-66: a thread that the bot may not open is named in /status, until it may", () =>
    Effect.gen(function* () {
      const at = yield* Served.setting
      const status = Effect.gen(function* () {
        const asked = People.slash(at.world, at.ann, at.general, "status")
        yield* at.discord.when("a status", () => asked.original !== undefined)
        return asked.original?.content ?? ""
      })
      const mention = () => People.say(at.world, at.ann, at.general, `<@${at.world.bot.id}> Hi`)
      // Messages of a channel are handled in order: what the one before changed is recorded.
      const refused = (message: { readonly id: string }) =>
        at.discord.when("a refusal", ({ asked }) =>
          asked.some(({ path, status }) => status === 403 && path.endsWith(`${message.id}/threads`))
        )
      People.overwrite(at.world, at.general, { deny: PermissionFlagsBits.CreatePublicThreads })
      mention()
      yield* refused(mention())
      assert.match(yield* status, new RegExp(`⚠️ <#${at.general.id}> .*50013`))
      People.overwrite(at.world, at.general, {})
      yield* at.model.answer(says("Hello."))
      yield* at.model.answer(says("Hello."))
      mention()
      yield* Served.threadOf(at, mention())
      assert.notInclude(yield* status, "⚠️")
    })
  )

  Served.law("DI-3: a server that refuses the bot's token ends it", () =>
    Effect.gen(function* () {
      const at = yield* Served.place
      const scope = yield* Scope.make()
      yield* Scope.extend(Served.start(at), scope)
      yield* Scope.close(scope, Exit.void)
      const given = Served.options(at)
      const services = yield* Served.services(at, given, "wrong-token-of-the-server")
      const error = yield* Effect.flip(Effect.provide(Bot.run(given), services))
      assert.strictEqual(error._tag, "Unauthorized")
    })
  )

  Served.law("DI-1: sessions of other origins are not published", () =>
    Effect.gen(function* () {
      const at = yield* Served.setting
      const sessions = yield* Sessions
      const other = yield* sessions.create({ location: { directory: at.folder } })
      yield* at.model.answer(says("Secret."))
      yield* sessions.ask({ sessionID: other.id, prompt: { text: "Hi" } })
      const thread = yield* threadOf(at)
      assert.deepStrictEqual(Served.texts(thread), ["Hello."])
      assert.deepStrictEqual(Served.texts(at.general), [`<@${at.world.bot.id}> Hi`])
    })
  )

  Served.law("DI-70: another program with the bot's token is told in the log, and the bot's own posts are not", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const { world } = place.discord
      const at = { ...place, ...place.discord, ann: People.join(world, "ann"), model: yield* ScriptedModel }
      const first = yield* Scope.make()
      const before: Array<string> = []
      yield* Scope.extend(Served.start(place, undefined, before), first)
      const thread = yield* threadOf(at)
      yield* Scope.close(first, Exit.void)
      assert.isFalse(before.some((line) => line.includes("another program")))
      const warning = `another program posts with the bot's token: run one bot for each token channel=${thread.id}`
      const isTold = yield* Deferred.make<void>()
      const push = (line: string) => line.startsWith(warning) && Deferred.unsafeDone(isTold, Effect.void)
      yield* Served.start(place, undefined, { push })
      // Another client of the same account.
      People.say(world, world.bot, thread, "I answer, too.")
      yield* waitingFor("the warning")(Deferred.await(isTold))
    })
  )

  Served.law("DI-68: what the bot lacks in a channel is said when its guild was announced, which may be later", () =>
    Effect.gen(function* () {
      const place = yield* Served.placeWith({ heartbeat: 100 })
      const { general, world } = place.discord
      world.gateway.announcesAfter = 3
      People.overwrite(world, general, { deny: PermissionFlagsBits.AddReactions })
      const warned = yield* Deferred.make<string>()
      const push = (line: string) => Deferred.unsafeDone(warned, Effect.succeed(line))
      yield* Served.start(place, undefined, { push })
      const line = yield* waitingFor("the warning")(Deferred.await(warned))
      assert.strictEqual(line, `the bot lacks: Add Reactions channel=${general.id}`)
    })
  )

  Served.law("DI-68: a channel whose guild is not announced in time has that problem, and messages do not wait", () =>
    Effect.gen(function* () {
      const { discord, folder } = yield* Served.place
      discord.world.gateway.announcesAfter = Infinity
      const settings = Served.options({ discord, folder })
      const { api, token } = settings
      const findings = yield* Effect.gen(function* () {
        yield* (yield* Discord).open
        return yield* check(settings.settings)
      }).pipe(Effect.provide(discordLayer({ token, api, guildWait: 50 })))
      const problem = "Discord: its server is not available: Discord did not announce it"
      assert.deepStrictEqual(findings, [{ channel: discord.general.id, problem }])
      yield* Served.start({ discord, folder })
      const at = { discord, folder, ...discord, ann: People.join(discord.world, "ann"), model: yield* ScriptedModel }
      assert.deepStrictEqual(Served.texts(yield* threadOf(at)), ["Hello."])
    })
  )

  Served.law(
    "DI-67: metrics count posts, edits, prompts, doubts and failures by reason, and the log names the channel",
    () =>
      Effect.gen(function* () {
        const place = yield* Served.place
        const { world } = place.discord
        const lines: Array<string> = []
        yield* Served.start(place, undefined, lines)
        const at = { ...place, ...place.discord, ann: People.join(world, "ann"), model: yield* ScriptedModel }
        const lost = Metric.tagged(Sender.failureCount, "reason", "lost")
        const counters = [Sender.postCount, Sender.editCount, Sender.promptCount, Sender.doubtCount, lost]
        const values = Effect.forEach(counters, (counter) => Effect.map(Metric.value(counter), ({ count }) => count))
        const before = yield* values
        const path = /^\/api\/v10\/channels\/\d+\/messages$/
        world.faults.scripted.push({ method: "POST", path, fault: { kind: "lost" } })
        const thread = yield* threadOf(at)
        // The next answer comes behind the end of the doubt.
        yield* at.model.answer(says("More."))
        People.say(world, at.ann, thread, "More?")
        yield* has(at, thread, "More.")
        const [posts = 0, edits = 0, prompts = 0, doubts = 0, failed = 0] = (yield* values).map(
          (count, index) => count - (before[index] ?? 0)
        )
        assert.deepStrictEqual([prompts, doubts, failed], [2, 1, 1])
        assert.isAtLeast(posts, 1)
        assert.isAtLeast(edits, 0)
        assert.isTrue(lines.some((line) => line.startsWith("Discord: ") && line.endsWith(`channel=${thread.id}`)))
      })
  )
})
