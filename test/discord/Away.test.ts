/** What happens while the bot is away, or may not read. Spec: DI-32, DI-34, DI-61 in specs/discord.md. */
import { assert, describe, it } from "@effect/vitest"
import { PermissionFlagsBits } from "discord.js"
import { Effect, Exit, Scope, Stream } from "effect"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { UnexpectedAnswer } from "../../packages/client/src/ClientError.ts"
import { isAway } from "../../packages/discord/src/live/Book.ts"
import { promptOf } from "../../packages/discord/src/domain/Names.ts"
import * as Outbox from "../../packages/discord/src/outbox/Outbox.ts"
import { says, ScriptedModel } from "../support/ScriptedModel.ts"
import { waitingFor } from "../support/Waiting.ts"
import * as People from "./support/People.ts"
import * as Served from "./support/ServedBot.ts"
import type { Channel, Message } from "./support/World.ts"

/** Many messages and two starts of the bot, and pauses of real time, on a slow machine. */
const slow = 120_000

const setting = Effect.gen(function* () {
  const at = yield* Served.place
  const ann = People.join(at.discord.world, "ann")
  return { ...at, ...at.discord, ann, model: yield* ScriptedModel, sessions: yield* Sessions }
})

type Setting = Effect.Effect.Success<typeof setting>

/** What a bot lives through before it ends. */
const during = <A, E, R>(at: Setting, life: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const scope = yield* Scope.make()
    yield* Scope.extend(Served.start(at), scope)
    const result = yield* life
    yield* Scope.close(scope, Exit.void)
    return result
  })

const isDone = ({ reactions }: Message) => (reactions.get("✅")?.size ?? 0) > 0

/** The texts that the model was shown, in order. */
const shownTo = ({ sessions }: Setting, thread: Channel) =>
  Effect.map(sessions.messages({ sessionID: Served.sessionIn(thread) }), ({ items }) =>
    items.flatMap((item) => (item.type === "user" ? [item.text] : []))
  )

/** Waits until the inbox of a thread has changed to these texts. */
const waits = ({ sessions }: Setting, thread: Channel, texts: ReadonlyArray<string>) =>
  sessions.events({ sessionID: Served.sessionIn(thread) }).pipe(
    Stream.mapEffect(() => sessions.inbox(Served.sessionIn(thread))),
    Stream.takeUntil((inputs) => JSON.stringify(inputs.map(({ prompt }) => prompt.text)) === JSON.stringify(texts)),
    Stream.runDrain,
    waitingFor(`the prompts ${texts.join(", ")}`)
  )

/** A thread in which the model works, and two prompts wait. */
const waiting = Effect.fnUntraced(function* (at: Setting) {
  const thread = yield* Served.threadIn(at, at.ann)
  People.say(at.world, at.ann, thread, "Work")
  yield* at.model.request
  const [first, second] = [People.say(at.world, at.ann, thread, "Frist"), People.say(at.world, at.ann, thread, "Two")]
  yield* waits(at, thread, ["Frist", "Two"])
  return { thread, first, second }
})

describe("a bot that was away", () => {
  Served.law(
    "DI-32: reads at most 200 messages of a thread, and says that there are more",
    () =>
      Effect.gen(function* () {
        const at = yield* setting
        const eve = People.join(at.world, "eve")
        const asking = Served.options(at, { ask: { users: [at.ann.id] } })
        const scope = yield* Scope.make()
        yield* Scope.extend(Served.start(at, asking), scope)
        const thread = yield* Served.threadIn(at, at.ann)
        yield* Scope.close(scope, Exit.void)
        for (let count = 0; count < 199; count++) People.say(at.world, eve, thread, `Talk ${count}`)
        const [last, later] = ["The last", "Too late"].map((text) => People.say(at.world, at.ann, thread, text))
        yield* at.model.answer(says("Read."))
        yield* Served.start(at, asking)
        const note = "⚠️ I was away, and read only 200 messages from then. Please write the later ones again."
        yield* at.discord.when("a note", () => Served.texts(thread).includes(note))
        yield* at.discord.when("an answer", () => last !== undefined && isDone(last))
        yield* at.model.answer(says("Again."))
        const again = People.say(at.world, at.ann, thread, "Once more")
        yield* at.discord.when("a next answer", () => isDone(again))
        assert.deepStrictEqual(yield* shownTo(at, thread), ["Hi", "The last", "Once more"])
        assert.strictEqual(later?.reactions.size, 0)
      }),
    slow
  )

  Served.law(
    "DI-32: reads again what it could not read because Discord failed for a while",
    () =>
      Effect.gen(function* () {
        const at = yield* setting
        const thread = yield* during(at, Served.threadIn(at, at.ann))
        const missed = People.say(at.world, at.ann, thread, "Missed")
        const path = new RegExp(`/${thread.id}/messages$`)
        at.world.faults.scripted.push({ method: "GET", path, fault: { kind: "failed", status: 503 }, times: 2 })
        yield* at.model.answer(says("Read."))
        yield* Served.start(at)
        yield* at.discord.when("an answer", () => isDone(missed))
        assert.deepStrictEqual(yield* shownTo(at, thread), ["Hi", "Missed"])
      }),
    slow
  )

  Served.law(
    "DI-61: a channel that refuses to be read, and then gets a message, loses none of those that were missed",
    () =>
      Effect.gen(function* () {
        const at = yield* setting
        const thread = yield* during(at, Served.threadIn(at, at.ann))
        People.say(at.world, at.ann, thread, "Missed")
        People.overwrite(at.world, at.general, { deny: PermissionFlagsBits.ViewChannel })
        yield* Served.start(at)
        const path = `/api/v10/channels/${thread.id}/messages`
        yield* at.discord.when("a refusal", ({ asked }) => asked.some((one) => one.path === path && one.status === 403))
        People.overwrite(at.world, at.general, {})
        yield* at.model.answer(says("Both read."))
        yield* at.model.answer(says("Both read."))
        const live = People.say(at.world, at.ann, thread, "Live")
        yield* at.discord.when("an answer", () => isDone(live))
        assert.deepStrictEqual(yield* shownTo(at, thread), ["Hi", "Missed", "Live"])
      }),
    slow
  )

  Served.law(
    "DI-34: takes back the prompts of messages that were deleted meanwhile, and replaces edited ones",
    () =>
      Effect.gen(function* () {
        const at = yield* setting
        const { first, second, thread } = yield* during(at, waiting(at))
        People.edit(at.world, thread, first, "First")
        People.remove(at.world, thread, second)
        yield* Served.start(at)
        yield* waits(at, thread, ["First"])
        yield* at.model.answer(says("Worked."))
        yield* at.model.answer(says("Seen."))
        yield* at.discord.when("an answer", () => isDone(first))
        assert.deepStrictEqual(yield* shownTo(at, thread), ["Hi", "Work", "First"])
      }),
    slow
  )

  Served.law(
    "DI-34: finishes an edit that a crash cut in two: the prompt was taken back, and not admitted anew",
    () =>
      Effect.gen(function* () {
        const at = yield* setting
        const { first, thread } = yield* during(at, waiting(at))
        People.edit(at.world, thread, first, "First")
        // The steps that it had done.
        const former = promptOf(first.id)
        yield* Effect.scoped(
          Effect.flatMap(Outbox.make({ filename: Served.options(at).outbox }), ({ beginEdit }) =>
            beginEdit({ message: first.id, channel: thread.id, former, delivery: "steer" })
          )
        )
        yield* at.sessions.withdraw(Served.sessionIn(thread), former)
        yield* Served.start(at)
        yield* waits(at, thread, ["Two", "First"])
        yield* at.model.answer(says("Worked."))
        yield* at.model.answer(says("Seen."))
        yield* at.discord.when("an answer", () => isDone(first))
        assert.deepStrictEqual(yield* shownTo(at, thread), ["Hi", "Work", "Two", "First"])
      }),
    slow
  )

  it("DI-3: a server that fails, or that did not read a request in time, is asked again, and a refusal is final", () => {
    const again = [400, 404, 408, 500, 502, 503].filter((status) =>
      isAway(new UnexpectedAnswer({ status, details: "the body is not JSON" }))
    )
    assert.deepStrictEqual(again, [408, 500, 502, 503])
  })
})
