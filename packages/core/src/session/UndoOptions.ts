/** Defines the arguments and the result of `Sessions.undo` as schemas. Spec: specs/undo.md UN-26..UN-30, UN-50..UN-53. */
import { Schema } from "effect"
import { MessageID, SessionID } from "@daybook/log/domain/Identifiers"
import { PromptInput } from "@daybook/log/domain/Values"

/** Takes back the last prompt of a session, or the last undo. */
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

/** The account of an undo or a redo. */
export const Undone = Schema.Struct({
  /** False: it was a dry run. */
  undone: Schema.Boolean,
  /** The message after which history continues; absent before the first message. */
  leafID: Schema.optionalWith(MessageID, { exact: true }),
  /** The prompt that an undo took back: edit it and send it again. */
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
  /** Why files of some turns stayed as they are: these turns have no snapshot. */
  problems: Schema.Array(Schema.String),
  /** Files that the snapshots do not hold, because they exceed a limit. */
  omitted: Schema.Array(Schema.String)
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

/** The history holds no undo that could be taken back. */
export class NothingToRedo extends Schema.TaggedError<NothingToRedo>("@daybook/core/NothingToRedo")("NothingToRedo", {
  sessionID: SessionID
}) {
  override get message() {
    return `${this.sessionID} has no undo to take back`
  }
}

/** Session or files went on since the undo. Nothing was changed. */
export class RedoRefused extends Schema.TaggedError<RedoRefused>("@daybook/core/RedoRefused")("RedoRefused", {
  sessionID: SessionID,
  /** `history`: messages or moves of the leaf follow. `files`: `paths` changed; `force` redoes them too. */
  reason: Schema.Literal("history", "files"),
  /** The first 100. */
  paths: Schema.Array(Schema.String)
}) {
  override get message() {
    return this.reason === "history"
      ? `${this.sessionID} went on since the undo, so it cannot be taken back; branch returns to any message`
      : `these files changed since the undo, so nothing was changed: ${this.paths.join(", ")}`
  }
}
