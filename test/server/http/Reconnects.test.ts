/** A reader that is cut off again and again, while events are stored. */
import { assert, it } from "@effect/vitest"
import { Effect, Random, Stream } from "effect"
import type { Frame } from "../../../packages/api/src/wire/EventFrames.ts"
import { scene } from "../../support/Harness.ts"
import { allFrames, frames } from "./support/Frames.ts"
import * as ServedApi from "./support/ServedApi.ts"

const reconnects = 100

it.scopedLive(
  "HT-40: readers that are cut off 200 times while events are stored get each event once, of a session and of the feed",
  () =>
    Effect.gen(function* () {
      const { id, sessions } = yield* scene()
      const write = Effect.forEach(
        [1, 2, 3, 4],
        (n) => Effect.zipLeft(sessions.rename(id, `name ${n}`), Effect.yieldNow()),
        {
          discard: true
        }
      )
      const read = Effect.fnUntraced(function* (path: string) {
        const seen: Array<number> = []
        let cursor = ""
        const take = (frame: Frame) => {
          if (frame.frame !== "event") return
          seen.push(frame.event.seq)
          cursor = frame.cursor
        }
        for (let n = 0; n < reconnects; n++) {
          const count = yield* Random.nextIntBetween(1, 5)
          // The end of the stream cuts the connection, with frames in flight.
          const some = frames(`${path}${cursor === "" ? "" : `?after=${cursor}`}`).pipe(
            Stream.filter(({ frame }) => frame === "event"),
            Stream.take(count),
            Stream.runForEach((frame) => Effect.sync(() => take(frame)))
          )
          yield* Effect.zipRight(write, some, { concurrent: true })
        }
        return {
          seen,
          rest: Effect.map(allFrames(`${path}?after=${cursor}&follow=0`), (left) => left.forEach(take))
        }
      })
      const readers = yield* Effect.all([read(`/sessions/${id}/events`), read("/events")], { concurrency: 2 })
      const stored = Array.from({ length: 2 * 4 * reconnects + 1 }, (_, seq) => seq)
      for (const { rest, seen } of readers) {
        yield* rest
        assert.deepEqual(seen, stored)
      }
    }).pipe(Effect.provide(ServedApi.layer())),
  120_000
)
