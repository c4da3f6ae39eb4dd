/** The tool `todo`: replaces or returns the session's list of work. Spec: TO-91..TO-93. */
import * as Tool from "@effect/ai/Tool"
import { Effect, Schema } from "effect"
import { type TodoItem, TodoItems } from "@daybook/log/domain/Todo"
import { SessionStore } from "@daybook/log/store/SessionStore"
import { ToolFailure } from "../../domain/ToolError.ts"
import { define } from "../../tool/ToolDefinition.ts"

const parameters = { items: Schema.optionalWith(TodoItems, { exact: true }) }

const TodoTool = Tool.make("todo", {
  description:
    "Keeps the list of steps for longer work. With items, replaces the whole list; without, returns the current list. " +
    "Have one item in progress at a time, and mark it done as soon as it is.",
  parameters,
  success: Schema.Struct({ items: TodoItems, changed: Schema.Boolean })
})

/** A longer list would be truncated for programs (TO-21). */
const longestList = 32 * 1024

const counted = (items: ReadonlyArray<TodoItem>): string => {
  const of = (status: TodoItem["status"]) => items.filter((item) => item.status === status).length
  return (
    `The list has ${items.length} ${items.length === 1 ? "item" : "items"}: ${of("done")} done, ` +
    `${of("in_progress")} in progress, ${of("pending")} pending, ${of("cancelled")} cancelled.`
  )
}

/** `todo`, for the list of the call's session. */
export const makeTodo = Effect.map(SessionStore, (store) =>
  define(TodoTool, {
    readOnly: true,
    handler: Effect.fn("Tool.todo")(function* ({ items }, { sessionID }) {
      if (items !== undefined) {
        const size = Buffer.byteLength(JSON.stringify(items))
        if (size <= longestList) return { items, changed: true }
        return yield* new ToolFailure({
          type: "tool.input",
          message: `the list has ${size} bytes, ${longestList} are allowed; shorten the texts`
        })
      }
      const current = yield* Effect.mapError(
        store.todos(sessionID),
        ({ message }) => new ToolFailure({ type: "tool.execution", message: `the list cannot be read: ${message}` })
      )
      return { items: current, changed: false }
    }),
    // A change is not echoed: the model has just written the list.
    render: ({ changed, items }) => ({
      structured: { items, changed },
      content: changed ? [{ type: "text", text: counted(items) }] : []
    })
  })
)
