/**
 * The durable inbox: admitted prompts that wait until a turn promotes them. This file is the contract; `SqlInbox.ts`
 * implements it. An id names one input or message forever, so that a prompt can be sent again safely.
 * Spec: IB-20..IB-43 in specs/sessions.md (IN-1..IN-12).
 */
import { Context, type Effect } from "effect"
import type { MessageID, SessionID } from "../domain/Identifiers.ts"
import type { ImportedLog, ImportUnfinished } from "../domain/Imported.ts"
import type { InboxFullError, NotWaiting, PromptConflictError } from "../domain/InboxError.ts"
import type { Input, Session } from "../domain/Message.ts"
import type { Delivery, Prompt } from "../domain/Values.ts"
import type { AppendError, LogUnavailable, SessionNotFound } from "../log/EventLog.ts"
import type { StoreError } from "./StoreError.ts"

export interface Admission {
  readonly sessionID: SessionID
  readonly messageID: MessageID
  readonly prompt: Prompt
  readonly delivery: Delivery
}

/** What decides whether a prompt can be admitted. */
export interface Prospect {
  /** The log that the session was imported from. */
  readonly imported: ImportedLog | undefined
  readonly waiting: number
  readonly taken: boolean
}

/** Selects waiting inputs, oldest admission first. */
export interface WaitingOptions {
  readonly limit: number
  readonly delivery?: Delivery
  /** Only inputs admitted at or before this sequence number. */
  readonly through?: number
}

/** What `Inbox` offers. */
export interface Service {
  /** What an admission under this id looks up, in one read. */
  readonly prospect: (
    sessionID: SessionID,
    messageID: MessageID
  ) => Effect.Effect<Prospect, SessionNotFound | LogUnavailable>
  /** The receipt of an exact earlier admission; undefined if the id is unused. Compares prompts only. */
  readonly receipt: (admission: Admission) => Effect.Effect<Input | undefined, PromptConflictError | StoreError>
  /**
   * Stores the prompt as a waiting input. Counts the inbox in the same transaction, so that concurrent admissions
   * never exceed `limit`. If another caller admitted the id meanwhile, returns that receipt or fails with the
   * conflict.
   */
  readonly admit: (
    admission: Admission,
    options: { readonly limit: number }
  ) => Effect.Effect<Input, ImportUnfinished | PromptConflictError | InboxFullError | StoreError | AppendError>
  /** Takes a waiting input out of the inbox. A promotion and a withdrawal of one input never both succeed. */
  readonly withdraw: (sessionID: SessionID, messageID: MessageID) => Effect.Effect<void, NotWaiting | AppendError>
  /** The input with this id, of any session: waiting, promoted or withdrawn. */
  readonly get: (messageID: MessageID) => Effect.Effect<Input | undefined, StoreError>
  readonly waiting: (sessionID: SessionID, options: WaitingOptions) => Effect.Effect<ReadonlyArray<Input>, StoreError>
  readonly count: (sessionID: SessionID) => Effect.Effect<number, LogUnavailable>
  /** Whether an input or a compaction waits, or the session's next owner is to go on with it. */
  readonly hasWork: (sessionID: SessionID) => Effect.Effect<boolean, LogUnavailable>
  /** The sessions with waiting inputs, in id order. */
  readonly sessions: Effect.Effect<ReadonlyArray<Session>, StoreError>
}

/**
 * The inbox of every session.
 *
 * @example
 * ```ts
 * import { Inbox } from "@daybook/log"
 * import { Effect } from "effect"
 *
 * // The sessions with prompts that wait, and how many.
 * export const waiting = Effect.gen(function* () {
 *   const inbox = yield* Inbox.Inbox
 *   return yield* Effect.forEach(yield* inbox.sessions, ({ id }) =>
 *     Effect.map(inbox.count(id), (count) => ({ id, count }))
 *   )
 * })
 * ```
 */
export class Inbox extends Context.Tag("@daybook/log/Inbox")<Inbox, Service>() {}
