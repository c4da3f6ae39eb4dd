/** Defines what the bot publishes: messages and reactions. Pure. Spec: DI-10, DI-13..DI-26 in specs/discord.md. */
import { createHash } from "node:crypto"
import { Schema } from "effect"
import { QuestionItem } from "@daybook/core/domain/Question"
import { MessageID, SessionID } from "@daybook/log/domain/Identifiers"
import { optional } from "@daybook/log/support/Optional"

// Gives each post a nonce: Discord creates no second message with the same nonce and author within a few minutes.

/** What a post is: a part of what one event of one session published. */
export interface PostKey {
  readonly sessionID: string
  /** The event's id, or the name of a question that is not an event. */
  readonly event: string
  /** Counts the messages that one event needs. */
  readonly chunk: number
}

/** A nonce that depends on the post alone: 24 characters, where Discord permits 25. */
export const nonceOf = ({ chunk, event, sessionID }: PostKey): string =>
  createHash("sha256")
    .update(JSON.stringify([sessionID, event, chunk]))
    .digest("base64url")
    .slice(0, 24)

/** A button below a message. `action` comes back when a person presses it. */
export const Button = Schema.Struct({
  action: Schema.String.pipe(Schema.maxLength(70)),
  label: Schema.String.pipe(Schema.maxLength(80)),
  style: Schema.Literal("primary", "secondary", "success", "danger")
})
export type Button = typeof Button.Type

/** A menu below a message. */
export const Menu = Schema.Struct({
  action: Schema.String.pipe(Schema.maxLength(70)),
  placeholder: optional(Schema.String),
  options: Schema.Array(
    Schema.Struct({ label: Schema.String, value: Schema.String, description: optional(Schema.String) })
  ),
  most: Schema.Int
})
export type Menu = typeof Menu.Type

/** The state of a message: what it shows. */
export const Body = Schema.Struct({
  content: Schema.String,
  /** Sent with the message when it is created, and never changed. */
  file: optional(Schema.Struct({ name: Schema.String, text: Schema.String })),
  buttons: optional(Schema.Array(Button)),
  menus: optional(Schema.Array(Menu))
})
export type Body = typeof Body.Type

/** What a button of the message acts on. */
export const Target = Schema.Union(
  Schema.Struct({ type: Schema.Literal("call"), sessionID: SessionID, messageID: MessageID, callID: Schema.String }),
  Schema.Struct({
    type: Schema.Literal("question"),
    sessionID: SessionID,
    messageID: MessageID,
    callID: Schema.String,
    questions: Schema.Array(QuestionItem)
  }),
  Schema.Struct({
    type: Schema.Literal("permission"),
    sessionID: SessionID,
    ask: Schema.String,
    /** When it is refused without a decision; absent: it waits without a limit. */
    expiresAt: optional(Schema.Int)
  }),
  /** The message begins a thread: for a question of a command, or for a fork of a session. */
  Schema.Struct({ type: Schema.Literal("begin"), text: optional(Schema.String), fork: optional(SessionID) })
)
export type Target = typeof Target.Type

/** A change of what the channel of a session shows. */
export type Change =
  | {
      readonly type: "post"
      readonly key: PostKey
      readonly body: Body
      /** Absent: the target of the post stays as it is. */
      readonly target?: Target
      /** The text is still written: it may be shown in part. */
      readonly grows?: true
    }
  /** The reaction of the bot to a message, in place of its earlier one. */
  | { readonly type: "react"; readonly message: string; readonly emoji: string | null }

/** Reactions by the state of a prompt. */
export const emoji = {
  admitted: "👀",
  running: "⚙️",
  done: "✅",
  failed: "❌",
  stopped: "🛑",
  incomplete: "⚠️"
} as const
