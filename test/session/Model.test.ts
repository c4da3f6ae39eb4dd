/**
 * Method: random commands (create, prompt with retries and conflicts, withdraw, wake, resume, answers of the provider,
 * interrupt, stop of one activity, move, death and reopening) drive the runtime on a file beside a model of its inbox; after each the two are compared,
 * and at the end everything that waits is let through. A failure prints the seed and the commands.
 */
import { it } from "@effect/vitest"
import { Effect } from "effect"
import { cases } from "../support/Cases.ts"
import { holdsFor } from "./support/Property.ts"

it.live(
  "IN-1: inbox and transcript are what the model says, whatever the commands",
  () => Effect.promise(() => holdsFor({ runs: cases(6), length: 30 })),
  cases(60_000)
)
