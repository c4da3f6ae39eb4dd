/** Maps the end of a drain to the outcome of its activity in the log. Pure. Spec: EX-D8. */
import { Cause, Exit, Match, Option } from "effect"
import type { StoredError } from "@daybook/log/domain/Values"
import type { ToolDeclined } from "../domain/ToolError.ts"
import type { RunError } from "./RunError.ts"

/** `Moved`: the session is now at another Location; `unfinished` tells whether its activity still had work. */
export type DrainResult = { readonly _tag: "Drained" } | { readonly _tag: "Moved"; readonly unfinished: boolean }

/** `Nothing`: the input that would have opened the activity was withdrawn before the start. */
export type ActivityResult = DrainResult | { readonly _tag: "Nothing" }

type Outcome = { readonly outcome: "completed" | "failed" | "interrupted"; readonly error?: StoredError }

/** The outcome of an activity that ended with this exit. */
export const outcomeOf = (exit: Exit.Exit<ActivityResult, RunError | ToolDeclined>): Outcome => {
  if (Exit.isSuccess(exit)) {
    return exit.value._tag !== "Moved"
      ? { outcome: "completed" }
      : { outcome: "interrupted", error: { type: "session.moved", message: "the session moved to another Location" } }
  }
  const failure = Cause.failureOption(exit.cause)
  if (Option.isNone(failure)) {
    return Cause.isInterruptedOnly(exit.cause)
      ? { outcome: "interrupted" }
      : { outcome: "failed", error: { type: "defect", message: "an internal error ended the activity" } }
  }
  return Match.value(failure.value).pipe(
    Match.when({ _tag: "ToolDeclined" }, ({ tool }): Outcome => ({
      outcome: "interrupted",
      error: { type: "declined", message: `a call of ${tool} was declined` }
    })),
    Match.orElse((error): Outcome => ({ outcome: "failed", error: { type: error._tag, message: error.message } }))
  )
}
