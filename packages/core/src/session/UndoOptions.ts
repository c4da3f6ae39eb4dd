/** Defines the arguments and the result of `Sessions.undo` as schemas. Spec: specs/undo.md UN-26..UN-30. */
import { Schema } from "effect"
import { MessageID, SessionID } from "@daybook/log/domain/Identifiers"
import { PromptInput } from "@daybook/log/domain/Values"

/** Takes back the last prompt of a session. */
export const UndoOptions = Schema.Struct({
  sessionID: SessionID,
  /** Restores files that changed since the turns too. What it replaces stays in the store. Default: false. */
  force: Schema.optional(Schema.Boolean),
  /** Says what would happen and changes nothing. Default: false. */
  dryRun: Schema.optional(Schema.Boolean)
})
export type UndoOptions = typeof UndoOptions.Type

/** What an undo did with a file; `path` is relative to the root of the work tree. */
export const UndoneFile = Schema.Struct({
  path: Schema.String,
  /**
   * `restored`: it has its earlier content or mode. `recreated`: it was gone. `deleted`: it was new. `already`: nothing
   * was to do. `conflict`: it was left as it is.
   */
  action: Schema.Literal("restored", "recreated", "deleted", "already", "conflict"),
  /** Why it is a conflict. */
  reason: Schema.optionalWith(Schema.String, { exact: true })
})
export type UndoneFile = typeof UndoneFile.Type

/** The account of an undo. */
export const Undone = Schema.Struct({
  /** False: it was a dry run. */
  undone: Schema.Boolean,
  /** The message after which history continues; absent before the first message. */
  leafID: Schema.optionalWith(MessageID, { exact: true }),
  /** The prompt that was taken back: edit it and send it again. */
  prompt: Schema.optionalWith(PromptInput, { exact: true }),
  /** The first 10,000 files. */
  files: Schema.Array(UndoneFile),
  counts: Schema.Struct({
    restored: Schema.NonNegativeInt,
    recreated: Schema.NonNegativeInt,
    deleted: Schema.NonNegativeInt,
    already: Schema.NonNegativeInt,
    conflicts: Schema.NonNegativeInt
  }),
  /** Files that the snapshots do not hold, because they exceed a limit. */
  omitted: Schema.Array(Schema.String),
  /** Why files of some turns stayed as they are: these turns have no snapshot. */
  problems: Schema.Array(Schema.String)
})
export type Undone = typeof Undone.Type

/** The history holds no prompt, so there is nothing to undo. */
export class NothingToUndo extends Schema.TaggedError<NothingToUndo>("@daybook/core/NothingToUndo")("NothingToUndo", {
  sessionID: SessionID
}) {
  override get message() {
    return `${this.sessionID} has no prompt to undo`
  }
}
