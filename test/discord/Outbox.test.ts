/** Posts exactly once, through lost replies, restarts and moved clocks. Spec: DI-10..DI-15 in specs/discord.md. */
import { assert, describe } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { hastily } from "../support/HastyClock.ts"
import { says, ScriptedModel } from "../support/ScriptedModel.ts"
import type { Fault } from "./support/Faults.ts"
import * as People from "./support/People.ts"
import * as Served from "./support/ServedBot.ts"

/** Later attempts of the bot come after pauses of real time. */
const slow = 30_000

const ofThread = /^\/api\/v10\/channels\/\d+\/messages$/

describe("the outbox", () => {
  const faults: ReadonlyArray<readonly [string, Fault]> = [
    ["lost", { kind: "lost" }],
    ["answered with an error", { kind: "failedAfter", status: 502 }],
    ["answered with what the HTTP library cannot read", { kind: "garbled" }],
    ["refused before it was done", { kind: "refused" }]
  ]
  for (const [what, fault] of faults) {
    Served.law(
      `DI-11: an answer whose creation is ${what} is there once, although Discord forgets nonces at once`,
      () =>
        Effect.gen(function* () {
          // Without a nonce window only the search can find the message.
          const at = yield* Served.placeWith({ nonceWindow: -1 })
          const { general, world } = at.discord
          const model = yield* ScriptedModel
          yield* Served.start(at)
          world.faults.scripted.push({ method: "POST", path: ofThread, fault })
          const ann = People.join(world, "ann")
          const message = People.say(world, ann, general, `<@${world.bot.id}> Go`)
          yield* model.answer(says("First."))
          const thread = yield* Served.threadOf(at, message)
          if (thread === undefined) return assert.fail("there is no thread")
          yield* Served.settled(at, thread)
          // The next answer comes after the first one is certain.
          yield* model.answer(says("Second."))
          People.say(world, ann, thread, "More")
          yield* at.discord.when("a second answer", () => Served.texts(thread).includes("Second."))
          const answers = Served.texts(thread).filter((text) => text !== "More")
          assert.deepStrictEqual(answers, ["First.", "Second."])
          assert.isTrue(world.asked.some((asked) => asked.fault === fault.kind))
        }),
      slow
    )
  }

  Served.law(
    "DI-11: an answer whose reply was lost before a restart beyond the nonce window is there once",
    () =>
      Effect.gen(function* () {
        const at = yield* Served.place
        const { general, world } = at.discord
        const model = yield* ScriptedModel
        const first = yield* Scope.make()
        yield* Scope.extend(Served.start(at), first)
        world.faults.scripted.push({ method: "POST", path: ofThread, fault: { kind: "lost" } })
        const message = People.say(world, People.join(world, "ann"), general, `<@${world.bot.id}> Go`)
        yield* model.answer(says("Only once."))
        const thread = yield* Served.threadOf(at, message)
        yield* at.discord.when("a lost reply", ({ asked }) => asked.some(({ fault }) => fault === "lost"))
        yield* Scope.close(first, Exit.void)
        at.discord.moveClock(world.settings.nonceWindow + 60_000)
        yield* Served.start(at)
        yield* Served.shows(at, thread, ["Only once."])
        yield* Served.settled(at, thread)
        assert.deepStrictEqual(Served.texts(thread), ["Only once."])
      }),
    slow
  )

  Served.law(
    "DI-13: the posts of a channel that wait come in order, and each is shown in its last state",
    () =>
      Effect.gen(function* () {
        const at = yield* Served.place
        const { general, world } = at.discord
        const model = yield* ScriptedModel
        yield* Served.start(at)
        world.faults.scripted.push({ method: "POST", path: ofThread, fault: { kind: "failed", status: 500 }, times: 2 })
        const long = Array.from({ length: 5 }, (_, i) => `${String(i).repeat(1_200)}`)
        const message = People.say(world, People.join(world, "ann"), general, `<@${world.bot.id}> Go`)
        yield* model.answer(says(long.join("\n\n")))
        const thread = yield* Served.threadOf(at, message)
        yield* Served.shows(at, thread, long)
      }),
    slow
  )

  Served.law("DI-14: a second bot on an outbox ends with an error", () =>
    Effect.gen(function* () {
      const at = yield* Served.place
      yield* Served.start(at)
      const second = yield* Effect.flip(Effect.scoped(Served.services(at)))
      assert.strictEqual(second._tag, "OutboxFailed")
      assert.include(second.message, "another bot uses this outbox")
    }).pipe(hastily)
  )

  Served.law("DI-25: an answer that mentions everyone pings nobody", () =>
    Effect.gen(function* () {
      const at = yield* Served.setting
      const { ann, general, model, world } = at
      const message = People.say(world, ann, general, `<@${world.bot.id}> Go`)
      yield* model.answer(says(`@everyone @here <@${ann.id}> <@&${People.makeRole(world, "all")}>`))
      const thread = yield* Served.threadOf(at, message)
      yield* at.discord.when("the answer", () => Served.texts(thread)[0]?.startsWith("@everyone") === true)
      for (const { pings } of thread?.messages ?? []) {
        assert.deepStrictEqual(pings, { everyone: false, users: [], roles: [] })
      }
    })
  )

  Served.law(
    "DI-20: an answer of 30,000 characters is a file with its beginning above, complete",
    () =>
      Effect.gen(function* () {
        const at = yield* Served.place
        const { general, world } = at.discord
        const model = yield* ScriptedModel
        yield* Served.start(at)
        const message = People.say(world, People.join(world, "ann"), general, `<@${world.bot.id}> Go`)
        const text = Array.from({ length: 600 }, (_, i) => `Line ${i} ${"word ".repeat(9)}`).join("\n")
        yield* model.answer(says(text))
        const thread = yield* Served.threadOf(at, message)
        yield* at.discord.when("a file", () => (thread?.messages.at(-1)?.attachments.length ?? 0) > 0)
        const [file] = thread?.messages.at(-1)?.attachments ?? []
        assert.strictEqual(Buffer.from(file?.bytes ?? []).toString(), text)
        assert.match(Served.texts(thread)[0] ?? "", /^Line 0 word/)
      }),
    slow
  )

  Served.law(
    "DI-11, DI-20: a file is there once, whole, although the HTTP library fails after each request that creates a message",
    () =>
      Effect.gen(function* () {
        const at = yield* Served.placeWith({ nonceWindow: -1 })
        const { general, world } = at.discord
        const model = yield* ScriptedModel
        yield* Served.start(at)
        world.faults.scripted.push({ method: "POST", path: ofThread, fault: { kind: "garbled" }, times: 2 })
        const message = People.say(world, People.join(world, "ann"), general, `<@${world.bot.id}> Go`)
        // Text of every kind of length in UTF-8, with what separates the parts of a form.
        const text = Array.from({ length: 600 }, (_, i) => `Line ${i} "ä€😀" --daybook\r ${"word ".repeat(7)}`).join(
          "\n"
        )
        yield* model.answer(says(text))
        const thread = yield* Served.threadOf(at, message)
        yield* at.discord.when("a file", () => (thread?.messages.at(-1)?.attachments.length ?? 0) > 0)
        yield* Served.settled(at, thread)
        yield* model.answer(says("Second."))
        if (thread === undefined) return assert.fail("there is no thread")
        People.say(world, People.join(world, "bob"), thread, "More")
        yield* at.discord.when("a second answer", () => Served.texts(thread).includes("Second."))
        const files = thread.messages.flatMap(({ attachments }) => attachments)
        assert.deepStrictEqual(
          files.map(({ bytes, contentType, filename }) => [filename, contentType, Buffer.from(bytes).toString()]),
          [["answer.md", "text/markdown", text.replaceAll("\r", "")]]
        )
        assert.lengthOf(Served.texts(thread), 4)
      }),
    slow
  )
})
