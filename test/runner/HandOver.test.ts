/**
 * What a process that ends hands over. Method: two runtimes on one file are two processes; gates hold a turn open while
 * the first one leaves.
 */
import { assert, it } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, PubSub, Ref, Stream, TestClock } from "effect"
import { join } from "node:path"
import { SessionExecution } from "../../packages/core/src/session/SessionExecution.ts"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { Moves } from "../../packages/log/src/coordination/Moves.ts"
import { ReadSql } from "../../packages/log/src/storage/Database.ts"
import { newSession, open, say, temporaryFolder, userTexts } from "../support/Harness.ts"
import { callParts, calls, says, ScriptedModel } from "../support/ScriptedModel.ts"
import { waitingFor } from "../support/Waiting.ts"
import { dataOf, gatedTool, resultsIn, tool, transcript } from "./support/Runs.ts"

const processes = Effect.gen(function* () {
  const filename = join(yield* temporaryFolder, "daybook.db")
  return { one: yield* open({ filename }), other: yield* open({ filename }) }
})

/** A session whose first turn calls a tool that the test holds open in the first process, and counts in the other. */
const midTurn = Effect.gen(function* () {
  const { one, other } = yield* processes
  const again = yield* Ref.make(0)
  const { id, slow } = yield* Effect.gen(function* () {
    const slow = yield* gatedTool("slow")
    const { id } = yield* newSession()
    yield* (yield* ScriptedModel).answer(calls(callParts("c1", "slow", {})))
    yield* say(id, "go")
    yield* (yield* ScriptedModel).request
    yield* slow.begun
    return { id, slow }
  }).pipe(Effect.provide(one))
  yield* Effect.provide(
    tool("slow", () =>
      Effect.as(
        Ref.update(again, (n) => n + 1),
        "again"
      )
    ),
    other
  )
  const execution = Context.get(one, SessionExecution)
  /** The first process leaves, its turn ends, and the session is handed over. */
  const handedOver = Effect.all([execution.leave("10 seconds"), slow.open, execution.left], { discard: true })
  return { again, execution, handedOver, id, one, other, slow }
})

/** The other process takes up what it finds, and answers. */
const goOn = (other: Context.Context<SessionExecution | ScriptedModel>, ...answers: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const [execution, model] = [yield* SessionExecution, yield* ScriptedModel]
    for (const answer of answers) yield* model.answer(says(answer))
    yield* Effect.forkScoped(execution.takeUp(execution.wake))
    yield* TestClock.adjust("250 millis")
    return yield* waitingFor("the other process to go on")(model.request)
  }).pipe(Effect.provide(other))

const outcomes = (id: Parameters<typeof dataOf>[0]) =>
  Effect.map(dataOf(id, "session.next.activity.settled"), (all) => all.map(({ outcome }) => outcome))

it.scoped("EX-820: a process that leaves ends its turn, and the next one goes on with the activity", () =>
  Effect.gen(function* () {
    const { again, handedOver, id, other } = yield* midTurn
    yield* handedOver
    const request = yield* goOn(other, "Done.")
    assert.deepStrictEqual(resultsIn(request), [["c1", "slow c1 is done"]])
    yield* Effect.gen(function* () {
      yield* (yield* Sessions).wait(id)
      assert.strictEqual((yield* dataOf(id, "session.next.activity.started")).length, 1)
      assert.deepStrictEqual(yield* outcomes(id), ["completed"])
      assert.deepStrictEqual(yield* dataOf(id, "session.next.tool.failed"), [])
      assert.strictEqual(yield* Ref.get(again), 0)
    }).pipe(Effect.provide(other))
  })
)

it.scoped("EX-824: a process that is told of a hand-over goes on at once", () =>
  Effect.gen(function* () {
    const hub = yield* PubSub.sliding<void>(1)
    const hints = { tell: Effect.asVoid(PubSub.publish(hub, undefined)), told: Stream.fromPubSub(hub) }
    const { handedOver, other } = yield* Effect.provideService(midTurn, Moves, hints)
    const [execution, model] = [Context.get(other, SessionExecution), Context.get(other, ScriptedModel)]
    yield* model.answer(says("Done."))
    yield* Effect.forkScoped(execution.takeUp(execution.wake))
    // Its first look finds nothing, and no time passes until its next one.
    yield* TestClock.adjust("1 millis")
    yield* handedOver
    assert.deepStrictEqual(resultsIn(yield* waitingFor("the other process to go on")(model.request)), [
      ["c1", "slow c1 is done"]
    ])
  })
)

it.scoped("EX-822: queued prompts wait for the next process, and run there after the activity, in order", () =>
  Effect.gen(function* () {
    const { execution, id, one, other, slow } = yield* midTurn
    yield* Effect.provide(say(id, "second", { delivery: "queue" }), one)
    yield* execution.leave("10 seconds")
    yield* Effect.provide(say(id, "third", { delivery: "queue" }), one)
    yield* slow.open
    yield* execution.left
    assert.deepStrictEqual(userTexts(yield* goOn(other, "1", "2", "3")), ["go"])
    yield* Effect.gen(function* () {
      yield* (yield* Sessions).wait(id)
      const texts = (yield* transcript(id)).flatMap((message) => (message.type === "user" ? [message.text] : []))
      assert.deepStrictEqual(texts, ["go", "second", "third"])
      assert.deepStrictEqual(yield* outcomes(id), ["completed", "completed", "completed"])
    }).pipe(Effect.provide(other))
  })
)

it.scoped("EX-822: a prompt that is admitted in a process that leaves runs in the other one", () =>
  Effect.gen(function* () {
    const { one, other } = yield* processes
    const id = yield* Effect.gen(function* () {
      const { id } = yield* newSession()
      yield* (yield* SessionExecution).leave("10 seconds")
      yield* say(id, "late")
      yield* (yield* Sessions).wait(id)
      assert.deepStrictEqual(yield* dataOf(id, "session.next.activity.started"), [])
      return id
    }).pipe(Effect.provide(one))
    assert.deepStrictEqual(userTexts(yield* goOn(other, "Here.")), ["late"])
    yield* Effect.provide(
      Effect.flatMap(Sessions, (sessions) => sessions.wait(id)),
      other
    )
  })
)

it.scoped("EX-829: a process that leaves claims no session that waits for its next owner", () =>
  Effect.gen(function* () {
    const { handedOver, id, one } = yield* midTurn
    yield* Effect.provide(say(id, "second", { delivery: "queue" }), one)
    yield* handedOver
    const epoch = Effect.map(
      Effect.flatMap(ReadSql, (sql) => sql`SELECT owner_id, owner_epoch FROM event_sequence WHERE session_id = ${id}`),
      ([row]) => row
    ).pipe(Effect.provide(one))
    const before = yield* epoch
    yield* Effect.gen(function* () {
      yield* say(id, "third", { delivery: "queue" })
      yield* (yield* SessionExecution).settled(id)
      assert.strictEqual((yield* Effect.exit((yield* SessionExecution).resume(id)))._tag, "Failure")
    }).pipe(Effect.provide(one))
    assert.deepStrictEqual(yield* epoch, before)
  })
)

it.scoped("EX-823: after the limit a process waits no longer for a turn", () =>
  Effect.gen(function* () {
    const { execution, id, one, other, slow } = yield* midTurn
    yield* execution.leave("10 seconds")
    const left = yield* Effect.fork(execution.left)
    yield* TestClock.adjust("9999 millis")
    assert.isNull(left.unsafePoll())
    yield* TestClock.adjust("1 millis")
    yield* Fiber.join(left)
    yield* execution.interrupt(id)
    assert.strictEqual(yield* slow.stopped, "c1")
    assert.deepStrictEqual(yield* Effect.provide(outcomes(id), one), ["interrupted"])
    assert.deepStrictEqual(yield* Effect.provide(Context.get(other, SessionExecution).settle(id), other), false)
  })
)

it.scoped("CU-54: a process that ends its work stops no run of another process, though it waits for the session", () =>
  Effect.gen(function* () {
    const { id, one, other, slow } = yield* midTurn
    yield* Effect.provide(say(id, "second", { delivery: "queue" }), one)
    const waiting = Context.get(other, SessionExecution)
    for (const sessions of [undefined, [id]]) {
      yield* waiting.wake(id)
      assert.deepStrictEqual(yield* waiting.active, [id])
      yield* waiting.stop(sessions)
      assert.deepStrictEqual(yield* waiting.active, [])
    }
    // The owner finds a request to stop with its next renewal.
    yield* TestClock.adjust("2 seconds")
    yield* Effect.gen(function* () {
      const model = yield* ScriptedModel
      for (const answer of ["Done.", "And that."]) yield* model.answer(says(answer))
      yield* slow.open
      yield* (yield* Sessions).wait(id)
      assert.deepStrictEqual(yield* outcomes(id), ["completed", "completed"])
    }).pipe(Effect.provide(one))
  })
)

it.scoped("EX-824: a session that was handed over shows as running, and nothing settles it as interrupted", () =>
  Effect.gen(function* () {
    const { handedOver, id, other } = yield* midTurn
    yield* handedOver
    yield* Effect.gen(function* () {
      const sessions = yield* Sessions
      assert.deepStrictEqual(yield* sessions.interrupted, [])
      assert.isFalse(yield* sessions.settle(id))
      assert.strictEqual((yield* sessions.get(id)).activity?.state, "running")
    }).pipe(Effect.provide(other))
  })
)

it.scoped("EX-825: who waits here for a session that is handed over is told that its run ended", () =>
  Effect.gen(function* () {
    const { execution, id, one, slow } = yield* midTurn
    const joined = yield* Effect.fork(
      Effect.provide(
        Effect.flatMap(Sessions, (sessions) => Effect.flip(sessions.resume(id))),
        one
      )
    )
    yield* Effect.yieldNow()
    yield* execution.leave("10 seconds")
    yield* slow.open
    const exit = yield* Fiber.await(joined)
    assert.strictEqual(Exit.isSuccess(exit) ? exit.value._tag : undefined, "RunInterrupted")
  })
)

it.scoped("EX-821: the turns before the hand-over count for the limit of the activity", () =>
  Effect.gen(function* () {
    const { handedOver, id, one, other } = yield* midTurn
    yield* handedOver
    yield* Effect.gen(function* () {
      const [model, sessions] = [yield* ScriptedModel, yield* Sessions]
      for (let turn = 2; turn <= 25; turn += 1) yield* model.answer(calls(callParts(`c${turn}`, "slow", {})))
      const failed = yield* Effect.flip(sessions.resume(id))
      assert.strictEqual(failed._tag, "TurnLimitExceeded")
      assert.strictEqual((yield* dataOf(id, "session.next.step.started")).length, 25)
    }).pipe(Effect.provide(other))
    assert.deepStrictEqual(yield* Effect.provide(outcomes(id), one), ["failed"])
  })
)

it.scoped("EX-826: an interrupt between two owners stops the activity where it was left", () =>
  Effect.gen(function* () {
    const { handedOver, id, other } = yield* midTurn
    yield* handedOver
    yield* Effect.gen(function* () {
      yield* (yield* Sessions).interrupt(id)
      assert.deepStrictEqual(yield* outcomes(id), ["interrupted"])
    }).pipe(Effect.provide(other))
  })
)

it.scoped("EX-828: a child whose parent runs here works on while the process leaves", () =>
  Effect.gen(function* () {
    const { execution, id, one, slow } = yield* midTurn
    yield* Effect.gen(function* () {
      const [model, sessions] = [yield* ScriptedModel, yield* Sessions]
      yield* execution.leave("10 seconds")
      const child = yield* sessions.create({ parentID: id, location: (yield* sessions.get(id)).location })
      yield* tool("quick", () => Effect.succeed("quick"))
      yield* model.answer(calls(callParts("c2", "quick", {})))
      yield* model.answer(says("Done."))
      yield* say(child.id, "help")
      yield* sessions.wait(child.id)
      assert.deepStrictEqual(yield* outcomes(child.id), ["completed"])
      yield* slow.open
      yield* execution.left
      assert.deepStrictEqual(yield* outcomes(id), [])
    }).pipe(Effect.provide(one))
  })
)
