/** An import, then an export in the same format, gives the source's lines. */
import { assert, it } from "@effect/vitest"
import { Chunk, Effect, FastCheck as fc, Layer, Runtime, Stream } from "effect"
import { layerStore } from "../../../packages/log/src/Store.ts"
import { cases } from "../../support/Cases.ts"
import { memoryLog } from "../../support/Database.ts"
import { isEntryDialect } from "../../../packages/formats/src/export/EntryRecord.ts"
import { anyEntries } from "../support/AnyEntries.ts"
import { linesOf, piRecords } from "../support/EntryTexts.ts"
import { eventsOf, exported, importText, piecesOf } from "../support/RoundTrips.ts"

const store = Layer.provideMerge(layerStore, memoryLog)

it.effect("IM-30: a log of pi, imported and exported as pi, has the same lines", () =>
  Effect.gen(function* () {
    const source = linesOf(piRecords("/tmp"))
    const report = yield* importText(source)
    assert.deepStrictEqual(report.problems, {})
    const { text } = yield* exported(report.sessionID, "pi")
    assert.deepStrictEqual(text.split("\n"), source.split("\n"))
  }).pipe(Effect.provide(store))
)

it.effect("IM-21: the events of an import repeat no long text of its source", () =>
  Effect.gen(function* () {
    const source = linesOf(piRecords("/tmp"))
    const { sessionID } = yield* importText(source)
    const differences = (yield* eventsOf(sessionID)).flatMap((event) =>
      event.type === "session.next.imported" ? [JSON.stringify(event.data.record?.difference ?? null)] : []
    )
    // Only a record of an unknown type holds its text.
    assert.strictEqual(differences.filter((text) => text.length > 2000).length, 1)
  }).pipe(Effect.provide(store))
)

it.effect("IM-12: cost and tokens add up to the source's", () =>
  Effect.gen(function* () {
    const { usage } = yield* importText(linesOf(piRecords("/tmp")))
    assert.deepStrictEqual(usage, { input: 600, output: 60, reasoning: 0, cacheRead: 12, cacheWrite: 8, cost: 0.875 })
  }).pipe(Effect.provide(store))
)

/** The records that the reader found, as lines. */
const readable = (text: string) =>
  Effect.map(Stream.runCollect(piecesOf(text)), (pieces) =>
    linesOf(Chunk.toReadonlyArray(pieces).flatMap((piece) => (piece._tag === "Problem" ? [] : [piece.record])))
  )

it.effect("IM-30: any entry log, imported and exported, has the records that its reader found", () =>
  Effect.gen(function* () {
    const runtime = yield* Effect.runtime<Layer.Layer.Success<typeof store>>()
    let copy = 0
    yield* Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(anyEntries, (records) =>
          Runtime.runPromise(
            runtime,
            Effect.gen(function* () {
              const [head, ...rest] = records
              const source = linesOf([
                { ...head, id: `0198c0de-0000-7000-8000-${String(++copy).padStart(12, "0")}` },
                ...rest
              ])
              const { dialect, sessionID } = yield* importText(source)
              const { text } = yield* exported(sessionID, isEntryDialect(dialect) ? dialect : "xcsh")
              assert.deepStrictEqual(text.split("\n"), (yield* readable(source)).split("\n"))
            })
          )
        ),
        { numRuns: cases(24) }
      )
    )
  }).pipe(Effect.provide(store))
)
