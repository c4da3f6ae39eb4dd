/**
 * Provides the built-in tools that need their session: `question`, `todo`, `task`. They exist only where the store and
 * the facade exist; file and command tools need neither. Location-scoped.
 */
import { Effect } from "effect"
import { makeQuestion } from "./Question.ts"
import { makeTask } from "./Task.ts"
import { makeTodo } from "./Todo.ts"

export interface SessionToolsOptions {
  /** Whether a person can answer; if false, there is no `question` tool. */
  readonly questions: boolean
  /** A session with this many ancestors starts no children. */
  readonly taskDepth: number
}

export const make = Effect.fnUntraced(function* ({ questions, taskDepth }: SessionToolsOptions) {
  const always = [yield* makeTodo, yield* makeTask({ taskDepth })]
  return questions ? [...always, yield* makeQuestion] : always
})
