/** Defines the events of branches, forks and undo: where history continues, and what that did to files. Spec: specs/events.md. */
import { Schema } from "effect"
import { Ranges } from "../domain/HistoryPath.ts"
import { MessageID, SessionID } from "../domain/Identifiers.ts"
import { durable } from "./Definition.ts"
import { assistantMessageID, optional, paths, spent } from "./Fields.ts"

/** The id of a git tree in the private store. */
const SnapshotID = Schema.String.pipe(Schema.pattern(/^[0-9a-f]{40,64}$/))

/**
 * The history continues after this message, without it before the first message. `path` is the history up to there;
 * later events follow it (HP-2).
 */
export const LeafMoved = durable("tree", "session.next.leaf.moved", 1, { messageID: optional(MessageID), path: Ranges })
/** A summary of the branch that was left, shown to the model. `from` was its leaf. */
export const BranchSummarized = durable("tree", "session.next.branch.summarized", 1, {
  messageID: MessageID,
  text: Schema.String,
  from: optional(MessageID),
  readFiles: optional(paths),
  modifiedFiles: optional(paths),
  ...spent
})
/** A person's label of a message, in place of an earlier one; without `label` the message has none. */
export const Labeled = durable("tree", "session.next.labeled", 1, {
  messageID: MessageID,
  label: optional(Schema.NonEmptyString)
})
/**
 * The events before this one repeat the history of session `from` up to a message. Cost and tokens of this session
 * count from here.
 */
export const Forked = durable("tree", "session.next.forked", 1, { from: SessionID, messageID: optional(MessageID) })

/**
 * The tools of a turn changed files of the Location. `before` and `after` are snapshots in the private store; without
 * them no snapshot was taken, and `problem` says why. `files` are the first of `count` changed paths, relative to the root
 * of the work tree; `omitted` are files that the snapshots do not hold.
 */
export const FilesChanged = durable("tree", "session.next.files.changed", 1, {
  assistantMessageID,
  before: optional(SnapshotID),
  after: optional(SnapshotID),
  files: paths,
  count: Schema.NonNegativeInt,
  omitted: optional(paths),
  problem: optional(Schema.String)
})
/**
 * An undo, and what it did to files; a redo if `redoes` is the undo that it takes back. `before` and `after` are snapshots
 * of the files around it, absent if no file was to be changed; `leafID` is the message that was the leaf. `files` are the
 * first changed paths, `left` the first ones that stayed because others had changed them.
 */
export const FilesRestored = durable("tree", "session.next.files.restored", 1, {
  before: optional(SnapshotID),
  after: optional(SnapshotID),
  redoes: optional(Schema.NonNegativeInt),
  leafID: optional(MessageID),
  files: paths,
  left: paths,
  counts: Schema.Struct({ changed: Schema.NonNegativeInt, conflicts: Schema.NonNegativeInt })
})
