/** The store of a folder's saved approvals; `SqlPermissionStore.ts` implements it. Spec: PM-3, PM-40..PM-47. */
import { Context, type Effect, Schema } from "effect"
import { SessionID } from "@daybook/log/domain/Identifiers"
import { ErrorCause } from "@daybook/log/domain/Json"
import type { EventOfType } from "@daybook/log/events/SessionEvents"
import type { Approval } from "../domain/Rule.ts"
import { optional } from "@daybook/log/support/Optional"

/** Saved approvals could not be read or written. */
export class PermissionStoreError extends Schema.TaggedError<PermissionStoreError>(
  "@daybook/core/PermissionStoreError"
)("PermissionStoreError", { operation: Schema.String, cause: ErrorCause }) {
  override get message() {
    return `saved approvals could not be used: ${this.operation} failed`
  }
}

/** This process's user id; undefined if the system has no users. */
export const ownUid = (): number | undefined => process.getuid?.()

/** The call that a person answered "always" to. */
export interface ApprovalSource {
  readonly sessionID: SessionID
  readonly callID: string
  readonly agent: string
}

export const SavedApproval = Schema.Struct({
  /** Identifies the approval in this database; never reused. */
  number: Schema.Int,
  /** The canonical folder in which it is valid. */
  folder: Schema.String,
  permission: Schema.String,
  resource: Schema.String,
  definition: optional(Schema.String),
  sessionID: optional(SessionID),
  callID: optional(Schema.String),
  agent: optional(Schema.String),
  /** The user whose process took the answer. */
  uid: optional(Schema.Int),
  /** Milliseconds since the epoch. */
  savedAt: Schema.Int,
  /** How many calls it allowed, and the time of the last; both may lag by a minute. */
  uses: Schema.Int,
  usedAt: optional(Schema.Int),
  revokedAt: optional(Schema.Int),
  revokedBy: optional(Schema.Int)
})
export type SavedApproval = typeof SavedApproval.Type

/** A session's event about a decision, or about a revoked approval. */
export type PermissionEvent = EventOfType<"session.next.permission.decided" | "session.next.permission.revoked">

/** What `PermissionStore` offers. */
export interface Service {
  /** The valid approvals of the folder at this path now, oldest first; with `permission`, only its own. */
  readonly list: (
    folder: string,
    permission?: string
  ) => Effect.Effect<ReadonlyArray<SavedApproval>, PermissionStoreError>
  /** The approvals of all folders, including missing folders and revoked approvals, oldest first. */
  readonly listAll: Effect.Effect<ReadonlyArray<SavedApproval>, PermissionStoreError>
  /** Adds approvals, and changes no existing approval. Returns the approvals that now cover the saved ones. */
  readonly save: (
    folder: string,
    approvals: ReadonlyArray<Approval>,
    source: ApprovalSource
  ) => Effect.Effect<ReadonlyArray<SavedApproval>, PermissionStoreError>
  /** Counts one use of each approval; written at most once a minute. */
  readonly used: (numbers: ReadonlyArray<number>) => Effect.Effect<void, PermissionStoreError>
  /** The latest decisions of the sessions in a folder, or in all folders, oldest first. */
  readonly decisions: (options: {
    readonly folder?: string
    readonly limit: number
  }) => Effect.Effect<ReadonlyArray<PermissionEvent>, PermissionStoreError>
  /**
   * Revokes approvals, immediately and in every process. Returns the approvals that were valid until now. Each is recorded as
   * an event in its session, unless the session was removed.
   */
  readonly revoke: (numbers: ReadonlyArray<number>) => Effect.Effect<ReadonlyArray<SavedApproval>, PermissionStoreError>
}

/**
 * Saved approvals, by folder.
 *
 * @example
 * ```ts
 * import { PermissionStore } from "@daybook/core"
 * import { Effect } from "effect"
 *
 * // Revokes each saved approval of a folder.
 * export const forget = Effect.fn(function* (folder: string) {
 *   const store = yield* PermissionStore.PermissionStore
 *   const approvals = yield* store.list(folder)
 *   return yield* store.revoke(approvals.map(({ number }) => number))
 * })
 * ```
 */
export class PermissionStore extends Context.Tag("@daybook/core/PermissionStore")<PermissionStore, Service>() {}
