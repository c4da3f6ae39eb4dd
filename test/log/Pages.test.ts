/** What a page holds in memory: 512 short payloads, or one long one. */
import { assert, it } from "@effect/vitest"
import { Array as Arr, Chunk, Effect, Stream } from "effect"
import type { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { verify } from "../../packages/log/src/maintenance/Doctor.ts"
import { rebuild } from "../../packages/log/src/maintenance/Rebuild.ts"
import { stores } from "../support/Database.ts"
import { begin, readAll, renamed, session } from "../support/Logs.ts"

const long = (name: string) => renamed(`${name} ${"x".repeat(1024 * 1024)}`)

for (const [store, layer] of Object.entries(stores)) {
  it.layer(layer)(`pages on ${store}`, (it) => {
    it.effect("LG-7: a page ends before a long payload, which is a page of its own, and says that rows follow", () =>
      Effect.gen(function* () {
        const log = yield* EventLog
        const id = session()
        yield* begin(id)
        for (let index = 0; index < 5; index += 1) {
          yield* log.append(id, [renamed("short")])
          yield* log.append(id, [long(String(index))])
        }
        const first = yield* log.read({ sessionID: id })
        assert.deepStrictEqual([first.events.length, first.cursor, first.hasMore], [2, 1, true])
        const second = yield* log.read({ sessionID: id, after: 1 })
        assert.deepStrictEqual([second.events.length, second.cursor, second.hasMore], [1, 2, true])
        const all = yield* readAll(id)
        assert.deepStrictEqual(
          all.map(({ seq }) => seq),
          Array.from({ length: 11 }, (_, seq) => seq)
        )
        const tailed = yield* Stream.runCollect(Stream.take(log.tail({ sessionID: id }), 11))
        assert.deepStrictEqual(Chunk.toReadonlyArray(tailed), all)
        const position = all[0]?.position ?? 0
        const fed = yield* Stream.runCollect(Stream.take(log.feed({ after: position - 1 }), 11))
        assert.deepStrictEqual(Chunk.toReadonlyArray(fed), all)
      })
    )

    it.effect("LG-82: pages of a tail grow to 1,024 short rows, and shrink to 64 long ones", () =>
      Effect.gen(function* () {
        const log = yield* EventLog
        const [short, wide] = [session(), session()]
        yield* begin(short, 2000)
        yield* begin(wide, 0)
        const text = "x".repeat(20_000)
        yield* log.append(
          wide,
          Arr.makeBy(639, () => renamed(text))
        )
        const pages = (sessionID: SessionID, events: number) =>
          log.tail({ sessionID }).pipe(
            Stream.take(events),
            Stream.chunks,
            Stream.map((page) => page.length),
            Stream.runCollect,
            Effect.map((lengths) => [...lengths])
          )
        assert.deepStrictEqual(yield* pages(short, 2001), [512, 1024, 465])
        assert.deepStrictEqual(yield* pages(wide, 640), [512, 64, 64])
      })
    )

    it.effect("RP-7: long events are rebuilt and found sound like any others", () =>
      Effect.gen(function* () {
        const log = yield* EventLog
        const id = session()
        yield* begin(id)
        yield* log.append(id, [long("one"), renamed("short"), long("two"), renamed("last")])
        assert.deepStrictEqual(yield* rebuild(id), { sessions: 1, events: 5 })
        const findings = yield* Stream.runCollect(verify)
        assert.deepStrictEqual(
          Chunk.toReadonlyArray(findings).filter(({ sessionID }) => sessionID === id),
          []
        )
      })
    )

    it.effect("LG-7: an event that is longer than a page is a page of its own", () =>
      Effect.gen(function* () {
        const log = yield* EventLog
        const id = session()
        yield* begin(id)
        yield* log.append(id, [renamed("x".repeat(5 * 1024 * 1024))])
        yield* log.append(id, [renamed("short")])
        const page = yield* log.read({ sessionID: id, after: 0 })
        assert.deepStrictEqual([page.events.length, page.cursor, page.hasMore], [1, 1, true])
        const last = yield* log.read({ sessionID: id, after: 1 })
        assert.deepStrictEqual([last.events.length, last.cursor, last.hasMore], [1, 2, false])
      })
    )
  })
}
