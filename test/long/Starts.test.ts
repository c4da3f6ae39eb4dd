/** The simultaneous first starts of test/log/Processes.world.test.ts, many times. DAYBOOK_RUNS chooses. */
import { it } from "@effect/vitest"
import { startsTogether } from "../support/Starts.ts"

it.scopedLive("ST-6: processes that open a new file at once all open it, for many files", () =>
  startsTogether(8, Number(process.env["DAYBOOK_RUNS"] ?? 600))
)
