/**
 * Reads sessions, messages and context from the projected tables. This file is the contract; `SqlSessionStore.ts`
 * implements it. Inputs are in `Inbox.ts`. Every list is read in pages by key, whatever the size of the store.
 * Spec: PJ-5..PJ-7.
 */
import { Context, type Effect } from "effect"
import type { Address } from "../domain/Address.ts"
import type { MessageID, SessionID } from "../domain/Identifiers.ts"
import type { InvalidInput } from "../domain/InvalidInput.ts"
import type { AssistantMessage, Message, Session } from "../domain/Message.ts"
import type { TreeOptions, TreePage } from "../domain/HistoryPath.ts"
import type { Estimated, Location, SessionMetrics, TodoItem, Usage } from "../domain/Values.ts"
import type { SessionEvent } from "../events/SessionEvents.ts"
import type { CommitHook, EventUnreadable, LogUnavailable, SessionNotFound } from "../log/EventLog.ts"
import type { Attempts, Continued, Opening, UnsettledTool } from "./ActivityRows.ts"
import type { MessageRows } from "./Assemble.ts"
import type { ContextMarks } from "./ContextRows.ts"
import type { ListOptions, MessagePage, MessagesOptions, Page } from "./Pages.ts"
import type { ContextStart, FramedStep } from "./RequestRows.ts"
import type { LocationLeft, TitleTaken } from "./SessionChecks.ts"
import type { StoreError } from "./StoreError.ts"
import type { Leaf, TreePlace } from "./TreeRows.ts"
import type { Redoable, Undoable } from "./UndoRows.ts"

export type { Leaf, TreePlace } from "./TreeRows.ts"
export type { Attempts, UnsettledTool } from "./ActivityRows.ts"

/** What `SessionStore` offers. */
export interface Service {
  readonly get: (sessionID: SessionID) => Effect.Effect<Session, SessionNotFound | StoreError>
  /** The session, its waiting inputs and its context's marks, in one read. */
  readonly standing: (sessionID: SessionID) => Effect.Effect<Standing, SessionNotFound | StoreError>
  /** Where a reader starts whose events were pruned: the state at the session's floor (RT-13). */
  readonly snapshot: (sessionID: SessionID) => Effect.Effect<SessionSnapshot, SessionNotFound | StoreError>
  /** The snapshots of the sessions after an id, in the order of ids, at most 100 (RT-14). */
  readonly snapshots: (after?: SessionID) => Effect.Effect<ReadonlyArray<SessionSnapshot>, StoreError>
  /** The session at this address, if any. */
  readonly addressed: (address: Address) => Effect.Effect<Session | undefined, StoreError>
  /** At most ten sessions with exactly this title, last used first. */
  readonly titled: (
    title: string,
    options?: { readonly directory?: string | undefined }
  ) => Effect.Effect<ReadonlyArray<Session>, StoreError>
  readonly list: (options: ListOptions) => Effect.Effect<Page<Session>, InvalidInput | StoreError>
  readonly interrupted: Effect.Effect<ReadonlyArray<Session>, StoreError>
  readonly message: (sessionID: SessionID, messageID: MessageID) => Effect.Effect<Message | undefined, StoreError>
  readonly messages: (options: MessagesOptions) => Effect.Effect<MessagePage, StoreError>
  /** A page of the session's tree, in the order of the log. */
  readonly tree: (options: TreeOptions) => Effect.Effect<TreePage, StoreError>
  readonly leaf: (sessionID: SessionID) => Effect.Effect<Leaf, LogUnavailable>
  /** The place of a message in the tree; undefined if the session has no such message. */
  readonly place: (
    sessionID: SessionID,
    messageID: MessageID
  ) => Effect.Effect<TreePlace | undefined, EventUnreadable | LogUnavailable>
  /** The messages that may be meant: by id, by label, by the beginning or end of an id. At most 10. */
  readonly find: (sessionID: SessionID, reference: string) => Effect.Effect<ReadonlyArray<MessageID>, LogUnavailable>
  /** The work that an activity with this opening continues, before its own first prompts join (RQ-45). */
  readonly continued: (sessionID: SessionID, opening: Opening) => Effect.Effect<Continued, EventUnreadable | StoreError>
  /** When an activity of the session last stored an event, in milliseconds since the epoch. */
  readonly lastWork: (sessionID: SessionID) => Effect.Effect<number | undefined, EventUnreadable | StoreError>
  /** What the session's last activity did so far. */
  readonly attempts: (sessionID: SessionID) => Effect.Effect<Attempts, EventUnreadable | StoreError>
  /** The messages and parts that the model is shown, as rows to continue folding from, and their cursor. */
  readonly contextRows: (sessionID: SessionID, baselineSeq: number) => Effect.Effect<ContextRows, LogUnavailable>
  /**
   * What the model was shown just before an event, as rows to fold the events from `from` on: the state when the last
   * checkpoint before the event was made, and the inputs promoted since. The cost depends on what was shown, not on
   * where the event is.
   */
  readonly contextAt: (
    sessionID: SessionID,
    at: { readonly baselineSeq: number; readonly before: number }
  ) => Effect.Effect<ContextStart, EventUnreadable | LogUnavailable>
  /** The last step at or before an event, with its request's frame; undefined if there was none. */
  readonly stepAt: (
    sessionID: SessionID,
    at: number
  ) => Effect.Effect<(FramedStep & { readonly message: AssistantMessage }) | undefined, EventUnreadable | StoreError>
  readonly context: (sessionID: SessionID, baselineSeq: number) => Effect.Effect<ReadonlyArray<Message>, StoreError>
  /** Tool calls that never settled because their process died (TU-2). */
  readonly unsettledTools: (sessionID: SessionID) => Effect.Effect<ReadonlyArray<UnsettledTool>, StoreError>
  /** The step without an end, if any. */
  readonly openStep: (sessionID: SessionID) => Effect.Effect<AssistantMessage | undefined, StoreError>
  /** The first `limit` instruction files that the session discovered, in order of discovery. */
  readonly instructionFiles: (
    sessionID: SessionID,
    limit: number
  ) => Effect.Effect<ReadonlyArray<string>, LogUnavailable>
  /** Refuses an append unless its session is at the Location. */
  readonly isAt: (location: Location) => CommitHook<LocationLeft>
  /** Refuses an append if a session other than its own has the title. */
  readonly isOnlyOne: (title: string) => CommitHook<TitleTaken>
  readonly ancestors: (sessionID: SessionID) => Effect.Effect<ReadonlyArray<Session>, StoreError>
  readonly rootOf: (sessionID: SessionID) => Effect.Effect<SessionID, StoreError>
  readonly treeUsage: (sessionID: SessionID) => Effect.Effect<Usage, LogUnavailable>
  /** What the session did, at the time `now` in milliseconds. Costs the same at any length of the session (PJ-16). */
  readonly metrics: (
    sessionID: SessionID,
    now: number
  ) => Effect.Effect<SessionMetrics, SessionNotFound | LogUnavailable>
  /** The estimated part of `treeUsage`. Reads all steps: for people, never during a turn. */
  readonly treeEstimated: (sessionID: SessionID) => Effect.Effect<Estimated, LogUnavailable>
  /** The event with this sequence number, also from retention's blocks; undefined if it no longer exists. */
  readonly event: (
    sessionID: SessionID,
    seq: number
  ) => Effect.Effect<SessionEvent | undefined, EventUnreadable | LogUnavailable>
  /** The last prompt of the history and what its turns changed; undefined if there is no prompt. */
  readonly undoable: (sessionID: SessionID) => Effect.Effect<Undoable | undefined, EventUnreadable | LogUnavailable>
  /** The last undo that no redo took back; undefined if there is none. */
  readonly redoable: (sessionID: SessionID) => Effect.Effect<Redoable | undefined, EventUnreadable | LogUnavailable>
  readonly todos: (sessionID: SessionID) => Effect.Effect<ReadonlyArray<TodoItem>, LogUnavailable>
}

/**
 * The read side of one database.
 *
 * @example
 * ```ts
 * import { SessionStore } from "@daybook/log"
 * import { Effect } from "effect"
 *
 * // The sessions whose last run a crash cut off.
 * export const cutOff = Effect.flatMap(SessionStore.SessionStore, ({ interrupted }) => interrupted)
 * ```
 */
export class SessionStore extends Context.Tag("@daybook/log/SessionStore")<SessionStore, Service>() {}

/**
 * A session at its floor. Its messages up to there are those of `messages` with a `seq` of at most `floor`, and its
 * later events those of `read` after `floor`, with this incarnation.
 */
export interface SessionSnapshot {
  readonly sessionID: SessionID
  readonly session: Session | undefined
  readonly incarnation: number
  /** The last removed event; -1 if there is none. */
  readonly floor: number
}

/** A session with the numbers of its waiting inputs, and where its context is. */
export interface Standing {
  readonly session: Session
  readonly steers: number
  readonly queued: number
  readonly marks: ContextMarks
}

/** The rows that the model is shown. */
export interface ContextRows extends MessageRows {
  readonly cursor: number
  /** The session's incarnation: a session removed and created again has another one. */
  readonly incarnation: number
}
