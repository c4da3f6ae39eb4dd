/** Defines the events of compactions and of pruned results: what the model is shown of the history. Spec: specs/events.md. */
import { Schema } from "effect"
import { editFields } from "../domain/ContextEdit.ts"
import { MessageID } from "../domain/Identifiers.ts"
import { StoredError } from "../domain/Values.ts"
import { withheldFields } from "../domain/Withheld.ts"
import { durable, live } from "./Definition.ts"
import { optional, paths, spent } from "./Fields.ts"

const CompactionReason = Schema.Literal("auto", "manual")
/** A compaction starts. */
export const CompactionStarted = durable("compactions", "session.next.compaction.started", 1, {
  messageID: MessageID,
  reason: CompactionReason
})
/** A compaction is requested; it runs at the next safe boundary. */
export const CompactionRequested = durable("compactions", "session.next.compaction.requested", 1, {
  messageID: MessageID
})
/** `text` is the summary, `recent` the serialized recent context. */
export const CompactionEnded = durable("compactions", "session.next.compaction.ended", 2, {
  messageID: MessageID,
  reason: CompactionReason,
  text: Schema.String,
  recent: Schema.String,
  /** The prompt that opened the current activity, verbatim up to a limit (CP-50). */
  task: optional(Schema.String),
  /**
   * Prompts from this sequence number on are shown verbatim after the checkpoint: no model has answered them (CP-49).
   */
  firstKeptSeq: optional(Schema.Int),
  /** All messages from this sequence number on are shown after the checkpoint; imported logs keep whole messages (CP-60). */
  keptSeq: optional(Schema.Int),
  /** Files read and modified so far, over all compactions. */
  readFiles: optional(paths),
  modifiedFiles: optional(paths),
  /** Estimated tokens of the request that triggered the compaction. */
  tokensBefore: optional(Schema.Finite),
  ...spent
})
/** The attempt failed: what the model is shown does not change. */
export const CompactionFailed = durable("compactions", "session.next.compaction.failed", 1, {
  messageID: MessageID,
  error: StoredError,
  ...spent
})
/**
 * Tool results in messages up to `through` are shown as placeholders; -1 shows all again. Stored data does not change.
 */
export const ContextPruned = durable("compactions", "session.next.context.pruned", 1, { through: Schema.Int })

/**
 * From here on the model is shown something else in place of a message, or of the result of a call. The last edit of each
 * holds. Stored data does not change (CP-440).
 */
export const ContextEdited = durable("compactions", "session.next.context.edited", 1, {
  messageID: MessageID,
  ...editFields
})

/**
 * The model's server refused this part of a message: from here on the model is shown a sentence in its place. The last
 * event of each part and model holds. Stored data does not change (RQ-644).
 */
export const PartWithheld = durable("compactions", "session.next.part.withheld", 1, {
  messageID: MessageID,
  ...withheldFields
})

/** A piece of a compaction's summary. */
export const CompactionDelta = live("session.next.compaction.delta", { messageID: MessageID, text: Schema.String })
