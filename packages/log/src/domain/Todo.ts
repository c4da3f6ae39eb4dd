/** Defines a session's todo list. Spec: TO-91..TO-93. */
import { Schema } from "effect"

/** One entry of a todo list. */
export const TodoItem = Schema.Struct({
  text: Schema.NonEmptyString.pipe(Schema.maxLength(500)).annotations({ description: "What is to be done" }),
  status: Schema.Literal("pending", "in_progress", "done", "cancelled")
})

export type TodoItem = typeof TodoItem.Type

/** A whole list. */
export const TodoItems = Schema.Array(TodoItem).pipe(Schema.maxItems(100))
