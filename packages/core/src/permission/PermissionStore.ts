/**
 * What people allowed for good in a folder: by which answer it came to be, how it was used, and taking it back. The SQL form
 * is in `SqlPermissionStore.ts`. Spec: PM-3, PM-40..PM-47.
 */
import { Context, Schema, type Effect } from "effect"
import type { EventOfType } from "../events/SessionEvents.ts"
import { SessionID } from "../Identifiers.ts"
import type { Approval } from "./Rule.ts"

/** Saved approvals could not be read or written. */
export class PermissionStoreError extends Schema.TaggedError<PermissionStoreError>(
  "@daybook/core/PermissionStoreError"
)("PermissionStoreError", { operation: Schema.String, cause: Schema.Defect }) {
  override get message() {
    return `saved approvals could not be used: ${this.operation} failed`
  }
}

/** The user that this process works for; undefined where the system has no users. */
export const ownUid = (): number | undefined => process.getuid?.()

/** The call that a person answered "always" to. */
export interface ApprovalSource {
  readonly sessionID: SessionID
  readonly callID: string
  /** The agent's name. */
  readonly agent: string
}

const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

/** An approval that was saved. Approvals of before version 6 of the database have no source. */
export const SavedApproval = Schema.Struct({
  /** Names it in this database; never used twice. */
  number: Schema.Int,
  /** The canonical folder that it is for. */
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
  /** How many calls it allowed, and the last of them: both may be a minute behind. */
  uses: Schema.Int,
  usedAt: optional(Schema.Int),
  revokedAt: optional(Schema.Int),
  revokedBy: optional(Schema.Int)
})
export type SavedApproval = typeof SavedApproval.Type

/** What was decided about a call, or an approval that was taken back, in its session. */
export type PermissionEvent = EventOfType<"session.next.permission.decided" | "session.next.permission.revoked">

/** Saved approvals, by folder. */
export class PermissionStore extends Context.Tag("@daybook/core/PermissionStore")<
  PermissionStore,
  {
    /**
     * The approvals that count in the folder that stands at this canonical path now, that may be for one permission, or all. The oldest
     * first.
     */
    readonly list: (
      folder: string,
      permission?: string
    ) => Effect.Effect<ReadonlyArray<SavedApproval>, PermissionStoreError>
    /** Those of all folders, gone ones and revoked ones included. The oldest first. */
    readonly listAll: Effect.Effect<ReadonlyArray<SavedApproval>, PermissionStoreError>
    /** Adds approvals; one that is there already stays as it is. Gives those that count for what was saved. */
    readonly save: (
      folder: string,
      approvals: ReadonlyArray<Approval>,
      source: ApprovalSource
    ) => Effect.Effect<ReadonlyArray<SavedApproval>, PermissionStoreError>
    /** Counts one use of each; written at most once a minute. */
    readonly used: (numbers: ReadonlyArray<number>) => Effect.Effect<void, PermissionStoreError>
    /** The last decisions in the sessions that work in a folder, or in all of them. The oldest first. */
    readonly decisions: (options: {
      readonly folder?: string
      readonly limit: number
    }) => Effect.Effect<ReadonlyArray<PermissionEvent>, PermissionStoreError>
    /**
     * Takes approvals back, at once and for every process. Gives those that counted until now. Their sessions have it as an
     * event, unless they were removed.
     */
    readonly revoke: (
      numbers: ReadonlyArray<number>
    ) => Effect.Effect<ReadonlyArray<SavedApproval>, PermissionStoreError>
  }
>() {}
