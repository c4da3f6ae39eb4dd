/** Streams whose token ends while they are read. */
import { assert, it } from "@effect/vitest"
import { Deferred, Duration, Effect, Fiber, Queue, Stream, TestClock } from "effect"
import { issue } from "../../../packages/server/src/http/Tokens.ts"
import { until } from "../../../packages/server/src/http/Streams.ts"
import { EventLog } from "../../../packages/log/src/log/EventLog.ts"
import { begin, renamed, session } from "../../contracts/Samples.ts"
import { clientOf } from "../../client/support/ServedClient.ts"
import { frames } from "./support/Frames.ts"
import * as ServedApi from "./support/ServedApi.ts"
import { answer, Served, token } from "./support/ServedApi.ts"

it.scoped("HT-57: a stream ends with its token, with a cursor to go on from; that of another token goes on", () =>
  Effect.gen(function* () {
    const [log, id] = [yield* EventLog, session()]
    yield* begin(id)
    for (const path of [`/sessions/${id}/events`, "/events"]) {
      const from = yield* TestClock.currentTimeMillis
      const short = `Bearer ${issue(token, { scope: "read", expires: from + 6_000 })}`
      const mine = yield* Stream.toQueueOfElements(frames(path, { authorization: short }))
      const others = yield* Stream.toQueueOfElements(frames(path))
      const next = (queue: typeof mine) => Effect.flatten(Queue.take(queue))
      const passed = (queue: typeof mine, title: string) =>
        Effect.repeat(next(queue), { until: (frame) => JSON.stringify(frame).includes(title) })
      yield* passed(mine, "replay.complete")
      yield* TestClock.adjust("5 seconds")
      yield* log.append(id, [renamed(`before the end on ${path}`)])
      const last = yield* passed(mine, `before the end on ${path}`)
      yield* TestClock.adjust("1 seconds")
      const end = yield* next(mine)
      assert.deepInclude(end, { frame: "end", reason: "unauthorized" })
      assert.strictEqual("cursor" in end && end.cursor, "cursor" in last && last.cursor)
      yield* log.append(id, [renamed(`after it on ${path}`)])
      yield* passed(others, `after it on ${path}`)
      assert.strictEqual((yield* answer(path, { headers: { authorization: short } })).status, 401)
    }
  }).pipe(Effect.provide(ServedApi.layer()))
)

it.scoped("HT-57: an end that is further than a timer can wait is waited for", () =>
  Effect.gen(function* () {
    const days = (count: number) => Duration.toMillis(Duration.days(count))
    const from = yield* TestClock.currentTimeMillis
    const waiting = yield* Effect.fork(until(from + days(40)))
    yield* TestClock.adjust(Duration.millis(days(40) - 1))
    assert.isNull(waiting.unsafePoll())
    // No timer waits longer than the platform can.
    for (const next of yield* TestClock.sleeps()) assert.isAtMost(next - (from + days(39)), days(1))
    yield* TestClock.adjust("1 millis")
    yield* Fiber.join(waiting)
    yield* until(0)
  })
)

it.scoped("HT-57: the client's stream fails with Unauthorized when its token ends", () =>
  Effect.gen(function* () {
    const [{ url }, id] = [yield* Served, session()]
    yield* begin(id)
    const client = yield* clientOf(url, issue(token, { scope: "read", expires: 1_000 }))
    const [begun, failed] = [yield* Deferred.make<void>(), yield* Deferred.make<string>()]
    yield* client.follow({ sessionID: id }).pipe(
      Stream.runForEach(() => Deferred.succeed(begun, undefined)),
      Effect.catchAll(({ _tag }) => Deferred.succeed(failed, _tag)),
      Effect.forkScoped
    )
    yield* Deferred.await(begun)
    yield* TestClock.adjust("1 seconds")
    assert.strictEqual(yield* Deferred.await(failed), "Unauthorized")
  }).pipe(Effect.provide(ServedApi.layer()))
)
