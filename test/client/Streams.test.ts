/** The streams of the client, over connections that break. */
import { assert, layer } from "@effect/vitest"
import { Chunk, Effect, Fiber, Stream } from "effect"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { begin, renamed, session } from "../../packages/log/src/testing/Samples.ts"
import { Served } from "../server/http/support/ServedApi.ts"
import * as Cutter from "./support/Cutter.ts"
import { clientOf, layer as served, withoutDelays } from "./support/ServedClient.ts"

const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, n) => from + n)

/** Bytes of answers that a connection carries before it breaks: most within a frame. */
const someBytes = (connection: number): number => 250 + ((connection * 7919) % 1000)

layer(served())("the streams of a client", (it) => {
  it.scoped(
    "HT-61: over connections that break within frames, every event comes once, in order, with one seam",
    () =>
      Effect.gen(function* () {
        const [log, { url }, id] = [yield* EventLog, yield* Served, session()]
        yield* begin(id, 300)
        const cutter = yield* Cutter.make(url, someBytes)
        const client = yield* clientOf(cutter.url)
        const reading = yield* client
          .eventsMarked({ sessionID: id })
          .pipe(Stream.take(501), Stream.runCollect, withoutDelays, Effect.fork)
        for (let n = 0; n < 20; n++) {
          yield* log.append(id, [renamed("a"), ...range(1, 9).map((each) => renamed(`${each}`))])
          yield* Effect.yieldNow()
        }
        const items = Chunk.toReadonlyArray(yield* Fiber.join(reading))
        const seqs = items.flatMap((item) => (item.type === "replay.complete" ? [] : [item.seq]))
        assert.deepEqual(seqs, range(1, 500))
        assert.isAtLeast(cutter.connections(), 200)
      }),
    120_000
  )
})
