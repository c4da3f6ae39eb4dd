/**
 * Says what an answer lacks although its request succeeded: a type for programs and a sentence for people, which are
 * the same for every reader. Pure. Spec: EX-T40, EX-T41 in specs/execution.md.
 */
import { isBlank } from "../support/Text.ts"
import type { AssistantMessage, Session } from "./Message.ts"
import type { StoredError } from "./Values.ts"

/** How an answer can end without being whole. */
export type AnswerProblemType = "answer.cut" | "answer.filtered" | "answer.refused" | "answer.empty"

/** What an answer lacks, in the form of an activity's error. */
export interface AnswerProblem extends StoredError {
  readonly type: AnswerProblemType
}

/** The finish of an answer with which the model refused, as the log stores it. */
export const refusal = "refusal"

/** The facts of an answer that ended. */
export interface EndedAnswer {
  readonly finish: string
  /** Whether it has a text that a person can see. */
  readonly spoken: boolean
  /** Whether it has a complete call. */
  readonly called: boolean
  /** Its tokens, as the provider counted them; 0 if it did not. */
  readonly tokens: number
}

const cut = (tokens: number): string =>
  `The answer was cut off at the model's output limit${tokens > 0 ? `, after ${tokens.toLocaleString("en-US")} tokens` : ""}.`

/** What the answer lacks; undefined if it is whole, or paused. */
export const problemOf = ({ called, finish, spoken, tokens }: EndedAnswer): AnswerProblem | undefined => {
  switch (finish) {
    case "pause":
      return undefined
    case "length":
      return { type: "answer.cut", message: cut(tokens) }
    case "content-filter":
      return {
        type: "answer.filtered",
        message: `The provider's filter withheld the ${spoken ? "rest of the " : ""}answer.`
      }
    case refusal:
      return { type: "answer.refused", message: "The model refused to answer." }
  }
  if (called) return undefined
  if (!spoken) return { type: "answer.empty", message: "The model answered nothing." }
  return finish === "tool-calls"
    ? { type: "answer.empty", message: "The model announced a tool call and made none." }
    : undefined
}

const hasText = ({ content }: AssistantMessage): boolean =>
  content.some((part) => part.type === "text" && !isBlank(part.text ?? ""))

/** What a message of the log lacks. */
export const problemOfMessage = (message: AssistantMessage): AnswerProblem | undefined => {
  const { content, error, estimated, finish, tokens } = message
  if (finish === undefined || error !== undefined) return undefined
  return problemOf({
    finish,
    spoken: hasText(message),
    called: content.some((part) => part.type === "tool" && part.input !== undefined),
    tokens: estimated === true ? 0 : (tokens?.output ?? 0)
  })
}

/** Whether a message of the log has nothing that a later request could show. */
export const answersNothing = (message: AssistantMessage): boolean =>
  !hasText(message) && problemOfMessage(message)?.type === "answer.empty"

const types: ReadonlySet<string> = new Set<AnswerProblemType>([
  "answer.cut",
  "answer.filtered",
  "answer.refused",
  "answer.empty"
])

export const isAnswerProblem = (error: StoredError | undefined): error is AnswerProblem =>
  error !== undefined && types.has(error.type)

/** What the last answer of a session's activity lacks. */
export const problemOfActivity = ({ activity }: Pick<Session, "activity">): AnswerProblem | undefined =>
  isAnswerProblem(activity?.error) ? activity.error : undefined

/** The problem in two words, as a state. */
export const problemWords = ({ type }: AnswerProblem): string => type.replace(".", " ")
