/** Maps the end of an activity to its outcome in the log. Pure. Spec: EX-D8. */
import { Cause, Exit, Option } from "effect"
import type { StoredError } from "@daybook/log/domain/Values"
import type { AnswerProblem } from "@daybook/log/domain/AnswerProblem"
import { ToolDeclined } from "../domain/ToolError.ts"
import { described } from "../support/Defect.ts"

/** `Moved`: the session is now at another Location; `unfinished` tells whether its activity still had work. */
export type DrainResult = { readonly _tag: "Drained" } | { readonly _tag: "Moved"; readonly unfinished: boolean }

/** `Nothing`: the input that would have opened the activity was withdrawn before the start. */
export type ActivityResult = DrainResult | { readonly _tag: "Nothing" }

type Outcome = { readonly outcome: "completed" | "failed" | "interrupted"; readonly error?: StoredError }

/** A tagged error, as the log stores it. */
type Failure = { readonly _tag: string; readonly message: string }

/** The outcome of an activity whose last answer lacks nothing, or this. */
export const completed = (problem: AnswerProblem | undefined): Outcome => ({
  outcome: "completed",
  ...(problem === undefined ? {} : { error: problem })
})

/** The outcome of an activity that ended with this exit. */
export const outcomeOf = (exit: Exit.Exit<ActivityResult, Failure>, problem: AnswerProblem | undefined): Outcome => {
  if (Exit.isSuccess(exit)) {
    return exit.value._tag !== "Moved"
      ? completed(problem)
      : { outcome: "interrupted", error: { type: "session.moved", message: "the session moved to another Location" } }
  }
  const failure = Option.getOrUndefined(Cause.failureOption(exit.cause))
  if (failure === undefined) {
    return Cause.isInterruptedOnly(exit.cause)
      ? { outcome: "interrupted" }
      : {
          outcome: "failed",
          error: { type: "defect", message: described(exit.cause, "an internal error ended the activity") }
        }
  }
  return failure instanceof ToolDeclined
    ? { outcome: "interrupted", error: { type: "declined", message: failure.message } }
    : { outcome: "failed", error: { type: failure._tag, message: failure.message } }
}
