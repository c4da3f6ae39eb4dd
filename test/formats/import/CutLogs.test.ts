/**
 * Logs that are imported in the middle of an answer, whose session then goes on here, and is exported: what recovery settles
 * stands behind its call. Every log is cut behind every line. Spec: IM-420, IM-760 in specs/import.md.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Sessions } from "../../../packages/core/src/session/Sessions.ts"
import * as EntryReader from "../../../packages/formats/src/entry/EntryReader.ts"
import { importLog } from "../../../packages/formats/src/import/Import.ts"
import { runtime, say } from "../../support/Harness.ts"
import { says, ScriptedModel } from "../../support/ScriptedModel.ts"
import { uuid } from "../support/ClaudeLogs.ts"
import { claudeLogs, codexLogs, type GrowingLog, read } from "../support/GrowingLogs.ts"
import { allKinds } from "../support/PiLogs.ts"
import { orphansOf, requestOf } from "../support/PiRequests.ts"
import { exported } from "../support/RoundTrips.ts"

let sessions = 5_000

/** Imports so many lines, goes on, and returns the request that pi makes of the exported log. */
const goesOn = (log: GrowingLog, count: number) =>
  Effect.gen(function* () {
    const { sessionID } = yield* importLog(read(log, uuid(++sessions), count), { directory: "/tmp" })
    yield* (yield* ScriptedModel).answer(says("welcome"))
    yield* say(sessionID, "hello")
    yield* (yield* Sessions).wait(sessionID)
    return requestOf((yield* exported(sessionID, "pi")).text)
  })

const assertWhole = (log: GrowingLog) =>
  Effect.forEach(log.cuts ?? log.lines.map((_, index) => index + 1), (count) =>
    Effect.map(goesOn(log, count), (request) => {
      const about = `${log.name}, cut at line ${count}`
      assert.deepStrictEqual(orphansOf(request), [], about)
      // A log may name a model that is not here: then there is no answer.
      assert.include(["hello", "welcome"], request.at(-1), about)
    })
  )

describe("cut logs", () => {
  for (const log of [...claudeLogs, ...codexLogs]) {
    it.effect(`IM-760: ${log.name}: after any cut no result is apart from its call in the export`, () =>
      Effect.provide(assertWhole(log), runtime())
    )
  }

  it.effect("IM-760: a log of pi imports at any cut, whole after it, and no result is apart from its call", () =>
    Effect.gen(function* () {
      const lines = allKinds("/tmp").map((record) => JSON.stringify(record))
      const id = String(allKinds("/tmp")[0]?.["id"])
      const pi: GrowingLog = {
        name: "pi",
        lines,
        reader: ({ ends }) => EntryReader.fromBytes({ ends }),
        id,
        file: "pi"
      }
      yield* assertWhole(pi)
      for (const count of lines.keys()) {
        const session = uuid(++sessions)
        yield* importLog(read(pi, session, count + 1), { directory: "/tmp" })
        const { records } = yield* importLog(read(pi, session, lines.length), { directory: "/tmp" })
        assert.strictEqual(
          records,
          (yield* importLog(read(pi, uuid(++sessions), lines.length), { directory: "/tmp" })).records
        )
      }
    }).pipe(Effect.provide(runtime()))
  )
})
