/**
 * The built-in tools that know their session: `question`, `todo`, `task`. They need the store and the facade, so they are
 * there only where those are; files and commands need neither. Location-scoped.
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
  /** Whether somebody can answer: without, `question` is not there. */
  readonly questions: boolean
  /** A session with this many above it starts no children. */
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
