/** The property of test/session/Model.test.ts, many times and longer. DAYBOOK_RUNS and DAYBOOK_SEED choose. */
import { it } from "@effect/vitest"
import { Effect } from "effect"
import { holdsFor } from "../session/support/Property.ts"

it.live("IN-1: inbox and transcript are what the model says, for many long sequences of commands", () =>
  Effect.promise(() => holdsFor({ runs: Number(process.env["DAYBOOK_RUNS"] ?? 500), length: 80 }))
)
