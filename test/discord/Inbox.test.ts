/** Messages of people: once, in order, also those from a time without the bot. Spec: DI-30..DI-36, DI-51 in specs/discord.md. */
import { assert, describe } from "@effect/vitest"
import { Effect, Exit, Scope, Stream } from "effect"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { allUserTexts, userTexts } from "../support/Harness.ts"
import { says, ScriptedModel } from "../support/ScriptedModel.ts"
import { makePlan } from "./support/Faults.ts"
import { waitingFor } from "../support/Waiting.ts"
import * as People from "./support/People.ts"
import * as Served from "./support/ServedBot.ts"

describe("messages of people", () => {
  Served.law("DI-30: a message that the gateway delivers twice is admitted once", () =>
    Effect.gen(function* () {
      const at = yield* Served.placeWith({}, makePlan(1, { redelivered: 1_000 }))
      const { world } = at.discord
      yield* Served.start(at)
      const thread = yield* Served.threadIn(at, People.join(world, "ann"))
      const sessions = yield* Sessions
      const { items } = yield* sessions.messages({ sessionID: Served.sessionIn(thread) })
      assert.strictEqual(items.filter(({ type }) => type === "user").length, 1)
      assert.deepStrictEqual(Served.texts(thread), ["Hello."])
    })
  )

  Served.law("DI-32: what was written while the bot was away is admitted once, in order, and the thread says so", () =>
    Effect.gen(function* () {
      const at = yield* Served.place
      const { world } = at.discord
      const [model, sessions] = [yield* ScriptedModel, yield* Sessions]
      const first = yield* Scope.make()
      yield* Scope.extend(Served.start(at), first)
      const ann = People.join(world, "ann")
      const thread = yield* Served.threadIn(at, ann)
      yield* Scope.close(first, Exit.void)
      const missed = ["one", "two", "three"].map((text) => People.say(world, ann, thread, text))
      for (let answer = 0; answer < 3; answer++) yield* model.answer(says(`Answer ${answer}.`))
      yield* Served.start(at)
      yield* at.discord.when("all prompts done", () =>
        missed.every(({ reactions }) => (reactions.get("✅")?.size ?? 0) > 0)
      )
      const { items } = yield* sessions.messages({ sessionID: Served.sessionIn(thread) })
      const texts = items.flatMap((item) => (item.type === "user" ? [item.text] : []))
      assert.deepStrictEqual(texts, ["Hi", "one", "two", "three"])
      yield* at.discord.when("a note", () => Served.texts(thread).some((text) => text.includes("3 messages from then")))
    })
  )

  Served.law("DI-51: a person who may not ask changes nothing; one with the role may", () =>
    Effect.gen(function* () {
      const at = yield* Served.place
      const { general, world } = at.discord
      const [model, sessions] = [yield* ScriptedModel, yield* Sessions]
      const role = People.makeRole(world, "asker")
      yield* Served.start(at, Served.options(at, { ask: { roles: [role] } }))
      const [eve, ann] = [People.join(world, "eve"), People.join(world, "ann", [role])]
      const refused = People.say(world, eve, general, `<@${world.bot.id}> rm -rf`)
      const thread = yield* Served.threadIn(at, ann)
      People.say(world, eve, thread, "Do something else")
      yield* model.answer(says("Still here."))
      People.say(world, ann, thread, "And now?")
      yield* at.discord.when("the second answer", () => Served.texts(thread).includes("Still here."))
      assert.deepStrictEqual(userTexts(yield* model.request), ["Hi", "And now?"])
      assert.isFalse(world.channels.has(refused.id))
      assert.strictEqual((yield* Effect.flip(sessions.get(Served.sessionIn(refused))))._tag, "SessionNotFound")
    })
  )

  Served.law("DI-33: a member's text names no file", () =>
    Effect.gen(function* () {
      const at = yield* Served.place
      const { world } = at.discord
      const model = yield* ScriptedModel
      yield* Served.start(at)
      const ann = People.join(world, "ann")
      const thread = yield* Served.threadIn(at, ann)
      yield* model.answer(says("No."))
      People.say(world, ann, thread, "Show @/etc/passwd please")
      const request = yield* model.request
      assert.deepStrictEqual(userTexts(request), ["Hi", "Show @/etc/passwd please"])
      assert.notInclude(allUserTexts(request).join("\n"), "root:")
    })
  )

  Served.law("DI-34: an edited message replaces its waiting prompt, and a deleted one is withdrawn", () =>
    Effect.gen(function* () {
      const at = yield* Served.place
      const { world } = at.discord
      const [model, sessions] = [yield* ScriptedModel, yield* Sessions]
      yield* Served.start(at)
      const ann = People.join(world, "ann")
      const thread = yield* Served.threadIn(at, ann)
      const id = Served.sessionIn(thread)
      // The model's answer is not scripted yet: later prompts wait.
      People.say(world, ann, thread, "Work")
      yield* model.request
      const [edited, removed] = [People.say(world, ann, thread, "Frist"), People.say(world, ann, thread, "Never mind")]
      yield* at.discord.when("both admitted", () => [edited, removed].every(({ reactions }) => reactions.has("👀")))
      People.edit(world, thread, edited, "First")
      People.remove(world, thread, removed)
      const changes = ["session.next.prompt.admitted", "session.next.prompt.withdrawn"]
      yield* sessions.events({ sessionID: id }).pipe(
        Stream.filter(({ type }) => changes.includes(type)),
        // Four prompts and the edited one are admitted, two are withdrawn.
        Stream.take(7),
        Stream.runDrain,
        waitingFor("the changes of the inbox")
      )
      assert.deepStrictEqual(
        (yield* sessions.inbox(id)).map(({ prompt }) => prompt.text),
        ["First"]
      )
      yield* model.answer(says("Worked."))
      yield* model.answer(says("Seen."))
      assert.include(userTexts(yield* model.request), "First")
    })
  )

  Served.law("DI-35: attachments become attachments of the prompt, and one that is too large is named", () =>
    Effect.gen(function* () {
      const at = yield* Served.place
      const { world } = at.discord
      const [model, sessions] = [yield* ScriptedModel, yield* Sessions]
      yield* Served.start(at)
      const ann = People.join(world, "ann")
      const thread = yield* Served.threadIn(at, ann)
      yield* model.answer(says("Read."))
      const bytes = Buffer.from("line of the file\n")
      const large = new Uint8Array(8 * 1_024 * 1_024 + 1)
      const message = People.say(world, ann, thread, "Read this", {
        files: [
          { field: "files[0]", filename: "notes.txt", contentType: "text/plain", bytes },
          { field: "files[1]", filename: "large.bin", contentType: "application/octet-stream", bytes: large }
        ]
      })
      yield* at.discord.when("it is done", () => (message.reactions.get("✅")?.size ?? 0) > 0)
      const { items } = yield* sessions.messages({ sessionID: Served.sessionIn(thread) })
      const prompt = items.findLast((item) => item.type === "user")
      if (prompt?.type !== "user") return assert.fail("there is no prompt")
      assert.deepStrictEqual(prompt.files, [
        { uri: `data:text/plain;base64,${bytes.toString("base64")}`, mime: "text/plain", name: "notes.txt" }
      ])
      assert.strictEqual(prompt.text, "Read this\n\n[attachment large.bin: it is too large]")
    })
  )

  Served.law(
    "DI-36: a message for which the inbox has no room gets an answer that says why",
    () =>
      Effect.gen(function* () {
        const at = yield* Served.place
        const { world } = at.discord
        const [model, sessions] = [yield* ScriptedModel, yield* Sessions]
        yield* Served.start(at)
        const ann = People.join(world, "ann")
        const thread = yield* Served.threadIn(at, ann)
        People.say(world, ann, thread, "Work")
        yield* model.request
        People.say(world, ann, thread, "This waits")
        const refused = People.say(world, ann, thread, "Too much")
        const why = "⚠️ Not admitted: 1 messages wait already. Please write it again when some are done."
        yield* at.discord.when("an answer", () => Served.texts(thread).at(-1) === why)
        yield* at.discord.when("a mark", () => (refused.reactions.get("❌")?.size ?? 0) > 0)
        const waiting = yield* sessions.inbox(Served.sessionIn(thread))
        assert.deepStrictEqual(
          waiting.map(({ prompt }) => prompt.text),
          ["This waits"]
        )
      }),
    undefined,
    { inboxLimit: 1 }
  )

  Served.law("DI-31: what is written in a thread while its mention is being admitted is admitted after it", () =>
    Effect.gen(function* () {
      const at = yield* Served.setting
      const { ann, general, model, world } = at
      // The thread is open before the bot knows: its request is answered later.
      world.faults.scripted.push({ method: "POST", path: /\/threads$/, fault: { kind: "failedAfter", status: 502 } })
      const message = People.say(world, ann, general, `<@${world.bot.id}> First`)
      const thread = yield* Served.threadOf(at, message)
      if (thread === undefined) return assert.fail("there is no thread")
      const second = People.say(world, ann, thread, "Second")
      yield* model.answer(says("One."))
      yield* model.answer(says("Two."))
      yield* at.discord.when("the end", () => (second.reactions.get("✅")?.size ?? 0) > 0)
      assert.deepStrictEqual(userTexts(yield* model.request).slice(0, 1), ["First"])
      const { items } = yield* (yield* Sessions).messages({ sessionID: Served.sessionIn(thread) })
      const texts = items.flatMap((item) => (item.type === "user" ? [item.text] : []))
      assert.deepStrictEqual(texts, ["First", "Second"])
    })
  )

  Served.law("DI-34: a mention that is deleted before its thread is open begins none, and nothing is wrong", () =>
    Effect.gen(function* () {
      const at = yield* Served.place
      const { general, world } = at.discord
      const lines: Array<string> = []
      yield* Served.start(at, undefined, lines)
      const ann = People.join(world, "ann")
      world.faults.scripted.push({ method: "POST", path: /\/threads$/, fault: { kind: "failed", status: 500 } })
      const message = People.say(world, ann, general, `<@${world.bot.id}> Never mind`)
      yield* at.discord.when("an attempt", ({ asked }) => asked.some(({ path }) => path.endsWith("/threads")))
      People.remove(world, general, message)
      yield* Served.threadIn(at, ann)
      assert.isFalse(world.channels.has(message.id))
      assert.isFalse(lines.some((line) => line.includes("(10008)")))
    })
  )
})
