/**
 * Provides the built-in tools that need their session: `question`, `todo`, `task`. They exist only where the store and
 * the facade exist; file and command tools need neither. Location-scoped.
 */
import { Context, Effect, Layer } from "effect"
import type { ToolDefinition } from "../ToolDefinition.ts"
import { makeQuestion } from "./Question.ts"
import { makeTask } from "./Task.ts"
import { makeTodo } from "./Todo.ts"

export class SessionTools extends Context.Tag("@daybook/core/SessionTools")<
  SessionTools,
  ReadonlyArray<ToolDefinition>
>() {}

export interface SessionToolsOptions {
  /** Whether a person can answer; if false, there is no `question` tool. */
  readonly questions: boolean
  /** A session with this many ancestors starts no children. */
  readonly taskDepth: number
}

export const layer = ({ questions, taskDepth }: SessionToolsOptions) =>
  Layer.effect(
    SessionTools,
    Effect.gen(function* () {
      const always = [yield* makeTodo, yield* makeTask({ taskDepth })]
      return questions ? [...always, yield* makeQuestion] : always
    })
  )
