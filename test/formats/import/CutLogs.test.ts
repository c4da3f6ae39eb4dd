/**
 * Logs that are imported in the middle of an answer, whose session then goes on here, and is exported: what recovery settles
 * stands behind its call. Every log is cut behind every line. Spec: IM-420, IM-760 in specs/formats.md.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Sessions } from "../../../packages/core/src/session/Sessions.ts"
import type { ReadingError } from "../../../packages/formats/src/entry/EntryReader.ts"
import { importLog } from "../../../packages/formats/src/import/Import.ts"
import { runtime, say } from "../../support/Harness.ts"
import { says, ScriptedModel } from "../../support/ScriptedModel.ts"
import { uuid } from "../support/ClaudeLogs.ts"
import { claudeLogs, codexLogs, type GrowingLog, read } from "../support/GrowingLogs.ts"
import { allKinds } from "../support/PiLogs.ts"
import { orphansOf, requestOf } from "../support/PiRequests.ts"
import { exported, piecesOf } from "../support/RoundTrips.ts"

let sessions = 5_000

/** A log by its name, the lines that it is cut behind, and the import of so many of them as a session of its own. */
interface CutLog {
  readonly name: string
  readonly cuts: ReadonlyArray<number>
  readonly imported: (session: string, count: number) => ReturnType<typeof importLog<ReadingError, never>>
}

const options = { directory: "/tmp" }

const growing = (log: GrowingLog): CutLog => ({
  name: log.name,
  cuts: log.cuts ?? log.lines.map((_, index) => index + 1),
  imported: (session, count) => importLog(read(log, session, count), options)
})

const piLines = allKinds("/tmp").map((record) => JSON.stringify(record))
const piID = String(allKinds("/tmp")[0]?.["id"])
const pi: CutLog = {
  name: "pi",
  cuts: piLines.map((_, index) => index + 1),
  imported: (session, count) => {
    const text = piLines.slice(0, count).map((line) => `${line}\n`)
    return importLog(() => piecesOf(text.join("").replaceAll(piID, session)), options)
  }
}

/** Imports so many lines, goes on, and returns the request that pi makes of the exported log. */
const goesOn = (log: CutLog, count: number) =>
  Effect.gen(function* () {
    const { sessionID } = yield* log.imported(uuid(++sessions), count)
    yield* (yield* ScriptedModel).answer(says("welcome"))
    yield* say(sessionID, "hello")
    yield* (yield* Sessions).wait(sessionID)
    return requestOf((yield* exported(sessionID, "pi")).text)
  })

const assertWhole = (log: CutLog) =>
  Effect.forEach(log.cuts, (count) =>
    Effect.map(goesOn(log, count), (request) => {
      const about = `${log.name}, cut at line ${count}`
      assert.deepStrictEqual(orphansOf(request), [], about)
      // A log may name a model that is not here: then there is no answer.
      assert.include(["hello", "welcome"], request.at(-1), about)
    })
  )

describe("cut logs", () => {
  for (const log of [...[...claudeLogs, ...codexLogs].map(growing), pi]) {
    it.effect(`IM-760: ${log.name}: after any cut no result is apart from its call in the export`, () =>
      Effect.provide(assertWhole(log), runtime())
    )
  }

  it.effect("IM-760: a log of pi imports at any cut, and whole after it", () =>
    Effect.gen(function* () {
      const whole = yield* pi.imported(uuid(++sessions), piLines.length)
      for (const count of pi.cuts) {
        const session = uuid(++sessions)
        yield* pi.imported(session, count)
        const { records } = yield* pi.imported(session, piLines.length)
        assert.strictEqual(records, whole.records)
      }
    }).pipe(Effect.provide(runtime()))
  )
})
