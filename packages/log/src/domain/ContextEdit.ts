/** Defines what the model is shown in place of a message, or of the result of a call. Spec: CP-440. */
import { Schema } from "effect"
import { JsonRecord, ToolContent } from "./Values.ts"

const optional = <S extends Schema.Schema.All>(schema: S) => Schema.optionalWith(schema, { exact: true })

/** A call that stays in an edited answer, with its input. */
export const EditedCall = Schema.Struct({ callID: Schema.NonEmptyString, input: JsonRecord })

/** What an edit says of its target. */
export const editFields = {
  /** The call of the answer whose result is edited; absent: the message is. */
  callID: optional(Schema.NonEmptyString),
  /** Absent: the model is not shown the message; of a result it is told that it was removed. */
  content: optional(Schema.Array(ToolContent)),
  /** The calls that stay in an edited answer, with their results. Absent: none. */
  calls: optional(Schema.Array(EditedCall))
}

/** An edit of a message for the model. */
export const ContextEdit = Schema.Struct(editFields)
export type ContextEdit = typeof ContextEdit.Type
