/**
 * The questions that models ask people, as calls of the `question` tool. A question is open from the moment its call is
 * stored until it is answered, dismissed or settled. This file is the contract; `SqlQuestionStore.ts` implements it.
 * Spec: TO-81..TO-86.
 */
import { Context, type Effect } from "effect"
import type { QuestionClosed, QuestionRef, SessionID } from "../domain/Identifiers.ts"
import type { AppendError, LogUnavailable } from "../log/EventLog.ts"

/** The name of the tool that asks. */
export const questionTool = "question"

export interface OpenQuestion extends QuestionRef {
  readonly input: unknown
  /** Milliseconds since the epoch. */
  readonly askedAt: number
}

/** What `QuestionStore` offers. */
export interface Service {
  readonly open: (sessionID: SessionID) => Effect.Effect<ReadonlyArray<OpenQuestion>, LogUnavailable>
  /** A cursor before the question's end: its call's sequence number, or -1 if there is no such call. */
  readonly cursorOf: (question: QuestionRef) => Effect.Effect<number, LogUnavailable>
  /** Records the answers. Of concurrent answers and dismissals, in any number of processes, one succeeds. */
  readonly answer: (
    question: QuestionRef,
    answers: ReadonlyArray<string>
  ) => Effect.Effect<void, QuestionClosed | AppendError>
  /** Records that the question will not be answered. */
  readonly dismiss: (question: QuestionRef) => Effect.Effect<void, QuestionClosed | AppendError>
}

/**
 * Open questions, and their ends.
 *
 * @example
 * ```ts
 * import { type Identifiers, QuestionStore } from "@daybook/log"
 * import { Effect } from "effect"
 *
 * // The questions of a session that wait for a person.
 * export const open = (sessionID: Identifiers.SessionID) =>
 *   Effect.flatMap(QuestionStore.QuestionStore, (questions) => questions.open(sessionID))
 * ```
 */
export class QuestionStore extends Context.Tag("@daybook/log/QuestionStore")<QuestionStore, Service>() {}
