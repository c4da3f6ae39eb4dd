/** The appends of a turn: what belongs together is one commit, and nothing waits for it (EX-110..EX-113). */
import { assert, it } from "@effect/vitest"
import Sqlite from "better-sqlite3"
import { Chunk, Deferred, Effect, Either, Fiber, Predicate, Queue, Stream } from "effect"
import { HostRequests } from "../../packages/core/src/request/HostRequests.ts"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { joined } from "../../packages/core/src/model/ProviderStream.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { newSession, runtime, say, scene, userTexts } from "../support/Harness.ts"
import { callParts, calls, finish, says, ScriptedModel, textParts } from "../support/ScriptedModel.ts"
import { tool } from "./support/Runs.ts"

/** Records the event types of each append from now on. */
const appends = Effect.gen(function* () {
  const log = yield* EventLog
  const seen: Array<ReadonlyArray<string>> = []
  yield* log.listen((events) =>
    Effect.sync(() => void seen.push(events.map(({ type }) => type.replace("session.next.", ""))))
  )
  return seen
})

it.scoped("EX-110, EX-111: an answer that streams in parts, and the end of its activity, are few commits", () =>
  Effect.gen(function* () {
    const { id, model, sessions } = yield* scene()
    yield* model.answer(says("The first turn records the frame."))
    yield* say(id, "Begin.", { resume: false })
    yield* sessions.resume(id)
    const seen = yield* appends
    yield* model.answer(Stream.rechunk(Stream.fromIterable([...textParts("t", "Hello", " you."), finish()]), 1))
    yield* say(id, "Hi", { resume: false })
    yield* sessions.resume(id)
    assert.deepStrictEqual(seen, [
      ["prompt.admitted"],
      ["activity.started", "prompt.promoted", "step.started"],
      ["text.started"],
      ["text.ended", "step.ended", "activity.settled"]
    ])
  }).pipe(Effect.provide(runtime()))
)

/** Counts the statements that the effect runs, on every connection. */
const statementsOf = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const database = new Sqlite(":memory:")
    const prototype: unknown = Object.getPrototypeOf(database.prepare("SELECT 1"))
    database.close()
    assert(Predicate.isRecord(prototype))
    let count = 0
    for (const name of ["all", "run"]) {
      const original = prototype[name]
      assert(Predicate.isFunction(original))
      yield* Effect.addFinalizer(() => Effect.sync(() => void (prototype[name] = original)))
      prototype[name] = function (this: unknown, ...parameters: ReadonlyArray<unknown>): unknown {
        count += 1
        return original.apply(this, parameters)
      }
    }
    yield* effect
    return count
  }).pipe(Effect.scoped)

it.scoped("EX-114: a prompt and its turn run at most 30 statements, however many turns came before", () =>
  Effect.gen(function* () {
    const { id, model, sessions } = yield* scene()
    const turn = Effect.gen(function* () {
      yield* model.answer(Stream.rechunk(Stream.fromIterable([...textParts("t", "Hello", " you."), finish()]), 1))
      yield* say(id, "Hi", { resume: false })
      yield* sessions.resume(id)
    })
    yield* turn
    yield* turn
    assert.isAtMost(yield* statementsOf(turn), 30)
    yield* Effect.replicateEffect(turn, 5)
    assert.isAtMost(yield* statementsOf(turn), 30)
  }).pipe(Effect.provide(runtime()))
)

it.scoped("EX-110: a text is stored when its end has arrived, though the provider is silent after it", () =>
  Effect.gen(function* () {
    const { id, model, sessions } = yield* scene()
    const gate = yield* Deferred.make<void>()
    const silence = Stream.drain(Stream.fromEffect(Deferred.await(gate)))
    yield* model.answer(
      Stream.fromIterable(textParts("t", "Hello.")).pipe(Stream.concat(silence), Stream.concat(Stream.make(finish())))
    )
    yield* say(id, "Hi")
    const stored = yield* sessions.events({ sessionID: id }).pipe(
      Stream.filter(({ type }) => type === "session.next.text.ended"),
      Stream.runHead,
      Effect.flatten
    )
    assert.isTrue(stored.type === "session.next.text.ended" && stored.data.text === "Hello.")
    yield* Deferred.succeed(gate, undefined)
    yield* sessions.wait(id)
  }).pipe(Effect.provide(runtime()))
)

it.scoped("EX-111: a steer that waits at the end of an answer keeps its activity open", () =>
  Effect.gen(function* () {
    const { id, model, sessions } = yield* scene()
    const gate = yield* Deferred.make<void>()
    const started = yield* Deferred.make<void>()
    const seen = yield* appends
    yield* model.answer(
      Stream.fromEffect(Effect.zipRight(Deferred.succeed(started, undefined), Deferred.await(gate))).pipe(
        Stream.drain,
        Stream.concat(says("One."))
      )
    )
    yield* model.answer(says("Two."))
    yield* say(id, "first")
    yield* Deferred.await(started)
    yield* say(id, "second")
    yield* Deferred.succeed(gate, undefined)
    yield* sessions.wait(id)
    const ends = seen.flat().filter((type) => type === "step.ended" || type === "activity.settled")
    assert.deepStrictEqual(ends, ["step.ended", "step.ended", "activity.settled"])
  }).pipe(Effect.provide(runtime()))
)

it.scoped(
  "EX-111: an answer that called a tool ends its step alone, and the answer to the results ends the activity",
  () =>
    Effect.gen(function* () {
      const model = yield* ScriptedModel
      const sessions = yield* Sessions
      yield* tool("more", () => Effect.succeed("more"))
      const { id } = yield* newSession()
      const seen = yield* appends
      yield* model.answer(calls(callParts("c", "more", {})))
      yield* model.answer(says("Done."))
      yield* say(id, "go", { resume: false })
      yield* sessions.resume(id)
      const last = (type: string) => seen.filter((types) => types.includes(type)).map((types) => types.at(-1))
      assert.deepStrictEqual(last("activity.settled"), ["activity.settled"])
      assert.deepStrictEqual(last("step.ended"), ["step.ended", "activity.settled"])
    }).pipe(Effect.provide(runtime()))
)

/** Holds the assembly of each request until the gate opens. */
const heldRequests = Effect.gen(function* () {
  const [entered, gate] = [yield* Queue.unbounded<void>(), yield* Deferred.make<void>()]
  yield* Effect.flatMap(HostRequests, (hooks) =>
    hooks.register({
      name: "held",
      request: (draft) => Effect.zipRight(Queue.offer(entered, undefined), Effect.as(Deferred.await(gate), draft))
    })
  )
  return { entered: Queue.take(entered), open: Deferred.succeed(gate, undefined) }
})

it.scoped("EX-113: a prompt that is withdrawn while its request is assembled is not sent, and the others are", () =>
  Effect.gen(function* () {
    const { id, model, sessions } = yield* scene()
    const held = yield* heldRequests
    const seen = yield* appends
    const first = yield* say(id, "first", { resume: false })
    yield* say(id, "second", { resume: false })
    yield* model.answer(says("Done."))
    const running = yield* Effect.fork(sessions.resume(id))
    yield* held.entered
    yield* sessions.withdraw(id, first.id)
    yield* held.open
    yield* Fiber.join(running)
    assert.deepStrictEqual(userTexts(yield* model.request), ["second"])
    const promoted = seen.filter((types) => types.includes("prompt.promoted"))
    assert.deepStrictEqual(promoted, [["activity.started", "prompt.promoted", "request.framed", "step.started"]])
  }).pipe(Effect.provide(runtime()))
)

it.scoped("EX-113: the only prompt, withdrawn while its request is assembled, opens no activity", () =>
  Effect.gen(function* () {
    const { id, model, sessions } = yield* scene()
    const held = yield* heldRequests
    const input = yield* say(id, "first")
    yield* held.entered
    const seen = yield* appends
    yield* sessions.withdraw(id, input.id)
    yield* held.open
    yield* sessions.wait(id)
    assert.deepStrictEqual(seen, [["prompt.withdrawn"]])
    assert.strictEqual(yield* model.pending, 0)
  }).pipe(Effect.provide(runtime()))
)

it.scoped("EX-113: an interrupt while the request is assembled stores the promotion, and ends the activity", () =>
  Effect.gen(function* () {
    const { id, model, sessions } = yield* scene()
    const held = yield* heldRequests
    const seen = yield* appends
    yield* say(id, "first")
    yield* held.entered
    yield* sessions.interrupt(id)
    assert.deepStrictEqual(seen, [["prompt.admitted"], ["activity.started", "prompt.promoted"], ["activity.settled"]])
    assert.strictEqual(yield* model.pending, 0)
    const { activity } = yield* sessions.get(id)
    assert.strictEqual(activity?.state, "interrupted")
  }).pipe(Effect.provide(runtime()))
)

/** Joins the chunks whose last text ends in a plus with what arrives at once. */
const joinedStream = <E>(source: Stream.Stream<string, E>) =>
  Stream.fromPull(Effect.flatMap(Stream.toPull(source), (pull) => joined(pull, (text) => text.endsWith("+"))))

it.scoped(
  "EX-110: chunks that arrive at once join the one that awaits them; all others pass unchanged and in order",
  () =>
    Effect.gen(function* () {
      const chunks = [["a"], ["b+"], ["c+"], ["d", "e"], ["f"], ["g+"]]
      const source = Stream.fromChunks(...chunks.map((chunk) => Chunk.fromIterable(chunk)))
      const found = yield* Stream.runCollect(Stream.chunks(joinedStream(source)))
      assert.deepStrictEqual(
        Chunk.toReadonlyArray(found).map((chunk) => Chunk.toReadonlyArray(chunk)),
        [["a"], ["b+", "c+", "d", "e"], ["f"], ["g+"]]
      )
    })
)

it.scoped("EX-110: a chunk that awaits more passes while nothing follows, and a failure comes after it", () =>
  Effect.gen(function* () {
    const queue = yield* Queue.unbounded<string>()
    const source = Stream.concat(Stream.take(Stream.fromQueue(queue, { maxChunkSize: 1 }), 2), Stream.fail("broken"))
    const got = yield* Queue.unbounded<Chunk.Chunk<string>>()
    const running = yield* Effect.fork(Stream.runForEachChunk(joinedStream(source), (chunk) => Queue.offer(got, chunk)))
    yield* Queue.offer(queue, "a+")
    assert.deepStrictEqual(Chunk.toReadonlyArray(yield* Queue.take(got)), ["a+"])
    yield* Queue.offer(queue, "b+")
    assert.deepStrictEqual(Chunk.toReadonlyArray(yield* Queue.take(got)), ["b+"])
    assert.deepStrictEqual(yield* Effect.either(Fiber.join(running)), Either.left("broken"))
  })
)
