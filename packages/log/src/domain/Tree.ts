/** Defines the tree of a session's messages as readers see it. Spec: specs/branches.md HP-4 to HP-6. */
import { Schema } from "effect"
import { MessageID, SessionID } from "./Identifiers.ts"
import { AnyNumber } from "./Json.ts"

const optional = <S extends Schema.Schema.All>(schema: S) => Schema.optionalWith(schema, { exact: true })

/** One message of a session's tree. */
export const TreeNode = Schema.Struct({
  id: MessageID,
  /** The message that it follows; absent for a root. */
  parentID: optional(MessageID),
  seq: Schema.Int,
  type: Schema.String,
  /** The beginning of its text. */
  text: Schema.String,
  label: optional(Schema.String),
  createdAt: Schema.Int,
  /** Whether it is on the history path. */
  onPath: Schema.Boolean,
  /** History continues after it. */
  leaf: optional(Schema.Literal(true))
})
export type TreeNode = typeof TreeNode.Type

/** Selects a page of a tree. */
export const TreeOptions = Schema.Struct({
  sessionID: SessionID,
  /** Default: 200; maximum: 500. */
  limit: Schema.optional(AnyNumber),
  /** The page starts after the message with this sequence number. */
  cursor: Schema.optional(AnyNumber)
})
export type TreeOptions = typeof TreeOptions.Type

/** One page of a tree, in the order of the log: a message comes after its parent. */
export const TreePage = Schema.Struct({
  items: Schema.Array(TreeNode),
  /** The message after which history continues; absent before the first message. */
  leafID: optional(MessageID),
  /** Number of messages of the session. */
  total: Schema.Int,
  /** Present if more follow. */
  cursor: optional(Schema.Int)
})
export type TreePage = typeof TreePage.Type

/** The session has no message with this id, or with this part of an id or label. */
export class MessageNotFound extends Schema.TaggedError<MessageNotFound>("@daybook/log/MessageNotFound")(
  "MessageNotFound",
  { sessionID: SessionID, messageID: Schema.String }
) {
  override get message() {
    return `${this.sessionID} has no message ${this.messageID}; daybook tree ${this.sessionID} lists its messages`
  }
}
