/** Laws of streams over connections that break within frames, for a number of events. Spec: HT-61 in specs/http.md. */
import { assert } from "@effect/vitest"
import { Chunk, Effect, Fiber, Stream } from "effect"
import { EventLog } from "../../../packages/log/src/log/EventLog.ts"
import { begin, renamed, session } from "../../contracts/Samples.ts"
import { Served } from "../../server/http/support/ServedApi.ts"
import * as Cutter from "./Cutter.ts"
import { clientOf, withoutDelays } from "./ServedClient.ts"

const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, n) => from + n)

/** Bytes of answers that a connection carries before it breaks: most within a frame. */
const someBytes = (connection: number): number => 250 + ((connection * 7919) % 1000)

/** Reads a session of `stored` events, while ten events at a time are appended `appends` times. Every two or three events a connection breaks. */
export const brokenSession = Effect.fnUntraced(function* (stored: number, appends: number) {
  const [log, { url }, id] = [yield* EventLog, yield* Served, session()]
  const total = stored + 10 * appends
  yield* begin(id, stored)
  const cutter = yield* Cutter.make(url, someBytes)
  const client = yield* clientOf(cutter.url)
  const reading = yield* client
    .eventsMarked({ sessionID: id })
    .pipe(Stream.take(total + 1), Stream.runCollect, withoutDelays, Effect.fork)
  for (let n = 0; n < appends; n++) {
    yield* log.append(id, [renamed("a"), ...range(1, 9).map((each) => renamed(`${each}`))])
    yield* Effect.yieldNow()
  }
  const items = Chunk.toReadonlyArray(yield* Fiber.join(reading))
  const seqs = items.flatMap((item) => (item.type === "replay.complete" ? [] : [item.seq]))
  assert.deepEqual(seqs, range(1, total))
  assert.isAtLeast(cutter.connections(), (total * 2) / 5)
})

/** Reads the feed, while two sessions get `appends` times two events between them. */
export const brokenFeed = Effect.fnUntraced(function* (stored: number, appends: number) {
  const [log, { url }] = [yield* EventLog, yield* Served]
  const [one, other] = [session(), session()]
  const client = yield* clientOf((yield* Cutter.make(url, someBytes)).url)
  yield* begin(one, stored)
  const reading = yield* client.feed().pipe(
    Stream.filter(({ sessionID }) => sessionID === one || sessionID === other),
    Stream.take(2 * (stored + appends + 1)),
    Stream.runCollect,
    withoutDelays,
    Effect.fork
  )
  yield* begin(other, stored)
  for (let n = 0; n < appends; n++) yield* log.append(n % 2 === 0 ? one : other, [renamed("a"), renamed("b")])
  const events = Chunk.toReadonlyArray(yield* Fiber.join(reading))
  for (const id of [one, other]) {
    const seqs = events.flatMap(({ seq, sessionID }) => (sessionID === id ? [seq] : []))
    assert.deepEqual(seqs, range(0, stored + appends))
  }
  const positions = events.map(({ position }) => position)
  assert.deepEqual(
    positions,
    positions.toSorted((a, b) => a - b)
  )
})
