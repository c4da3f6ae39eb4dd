/** The kills of test/log/Deletion.test.ts, many times. DAYBOOK_RUNS chooses. */
import { it } from "@effect/vitest"
import { erases } from "../log/support/Traces.ts"

it.scopedLive("LG-52: a removal that was killed at any instant is whole or finished, after many kills", () =>
  erases(Number(process.env["DAYBOOK_RUNS"] ?? 200), Math.random)
)
