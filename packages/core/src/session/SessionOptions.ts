/**
 * Defines the arguments and results of the facade's verbs as schemas, so that servers and clients can be derived from
 * them. An id is any text here: the verb checks it and names the field at fault. Contract of the verbs: `Sessions.ts`.
 * Spec: NM-8 in specs/sessions.md, UN-26..UN-30, UN-50..UN-53 in specs/sessions.md.
 */
import { Schema } from "effect"
import { Address } from "@daybook/log/domain/Address"
import { ActivityID, MessageID, SessionID } from "@daybook/log/domain/Identifiers"
import { AnyNumber } from "@daybook/log/domain/Json"
import { Session } from "@daybook/log/domain/Message"
import { Delivery, Estimated, Location, ModelRef, PromptInput, Usage } from "@daybook/log/domain/Values"
import { QuestionRef } from "../domain/Question.ts"

// Defines the arguments and the result of `Sessions.undo` as schemas.

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
  /** `restored`: earlier content or mode. `recreated`: it was gone. `deleted`: it was new. `conflict`: it was left. */
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

// Defines how sessions get their names.

/** How sessions without a name get one: from the session's model, from the first prompt, or not at all. */
export const NamingMode = Schema.Literal("model", "prompt", "off")
export type NamingMode = typeof NamingMode.Type

export const Placement = Schema.Struct({
  address: Address,
  /** The folder that its agent sees as `/`: an absolute real path. */
  root: Schema.optional(Schema.String)
})
export type Placement = typeof Placement.Type

const creation = {
  location: Location,
  agent: Schema.optional(Schema.String),
  model: Schema.optional(ModelRef),
  parentID: Schema.optional(SessionID),
  /** Default: `interactive`; with a `cronJobID`: `cron`. */
  source: Schema.optional(Schema.Literal("interactive", "cron")),
  /** The scheduled job that begins the session. */
  cronJobID: Schema.optional(Schema.String),
  /** Instructions of this session alone, shown to the model as a system text; at most 100,000 characters. */
  instructions: Schema.optional(Schema.String)
}

/** Options of a new session; only `location` is required. */
export const CreateOptions = Schema.Struct({
  id: Schema.optional(Schema.String),
  ...creation,
  title: Schema.optional(Schema.String),
  /** The title is the beginning of the first prompt, which a name replaces after the first turn (NM-2). */
  provisional: Schema.optional(Schema.Boolean),
  /**
   * If a session already has this address, `create` returns that session unchanged, unless another `id` is given
   * (AD-3).
   */
  placement: Schema.optional(Placement)
})
export type CreateOptions = typeof CreateOptions.Type

/** Options of `named`: the options of a new session, with its title. */
export const NamedOptions = Schema.Struct({ ...creation, title: Schema.String })
export type NamedOptions = typeof NamedOptions.Type

const prompting = {
  id: Schema.optional(Schema.String),
  sessionID: SessionID,
  prompt: PromptInput,
  /** Default: `steer`. */
  delivery: Schema.optional(Delivery),
  /** False takes the text literally: mentions and templates are not expanded. Use it for text that no person wrote. */
  expand: Schema.optional(Schema.Boolean)
}

/** A prompt for a session. With a caller-supplied id it can be sent again safely. */
export const PromptOptions = Schema.Struct({
  ...prompting,
  /** False admits only. By default the session is woken. */
  resume: Schema.optional(Schema.Boolean)
})
export type PromptOptions = typeof PromptOptions.Type

/** A prompt to answer. With the same id, `ask` returns the same answer. */
export const AskOptions = Schema.Struct(prompting)
export type AskOptions = typeof AskOptions.Type

/** The session with a title, and whether `named` created it. */
export const NamedSession = Schema.Struct({ session: Session, isNew: Schema.Boolean })
export type NamedSession = typeof NamedSession.Type

/** What to interrupt: the session's work, or only one activity. */
export const InterruptOptions = Schema.Struct({ activityID: Schema.optional(ActivityID) })
export type InterruptOptions = typeof InterruptOptions.Type

/**
 * Selects a request: the request of the turn that the event at `at` belongs to, or the request that would be sent now.
 */
export const RequestOptions = Schema.Struct({ sessionID: SessionID, at: Schema.optional(AnyNumber) })
export type RequestOptions = typeof RequestOptions.Type

export const BranchOptions = Schema.Struct({
  sessionID: SessionID,
  messageID: Schema.String,
  /** Whether the session's model summarizes the branch that is left, for the branch that begins (HP-26). */
  summary: Schema.optional(Schema.Boolean)
})
export type BranchOptions = typeof BranchOptions.Type

/** A move of the leaf. */
export const Branched = Schema.Struct({
  /** False: history already continued there, and nothing was stored. */
  moved: Schema.Boolean,
  /** The message after which history continues; absent before the first message. */
  leafID: Schema.optionalWith(MessageID, { exact: true }),
  /** The message with the summary of the branch that was left. */
  summaryID: Schema.optionalWith(MessageID, { exact: true }),
  /** The prompt that the branch begins before: edit it and send it again. */
  prompt: Schema.optionalWith(PromptInput, { exact: true })
})
export type Branched = typeof Branched.Type

/** Options of a fork. */
export const ForkOptions = Schema.Struct({
  sessionID: SessionID,
  messageID: Schema.optional(Schema.String),
  id: Schema.optional(Schema.String),
  /** Default: the title of the source. */
  title: Schema.optional(Schema.String)
})
export type ForkOptions = typeof ForkOptions.Type

/** A fork, and the prompt that it was made before. */
export const Forked = Schema.Struct({ session: Session, prompt: Schema.optionalWith(PromptInput, { exact: true }) })
export type Forked = typeof Forked.Type

/** The label of a message: one line of at most 100 characters. */
export const Label = Schema.NonEmptyTrimmedString.pipe(
  Schema.pattern(/^[^\p{Cc}\p{Zl}\p{Zp}]{1,100}$/u, { message: () => "use one line of 1 to 100 characters" })
)

/** Labels a message; without a label, removes the message's label. */
export const LabelOptions = Schema.Struct({
  sessionID: SessionID,
  messageID: Schema.String,
  label: Schema.optional(Schema.String)
})
export type LabelOptions = typeof LabelOptions.Type

/** The answers to a call's questions: one text for each, in order. */
export const AnswerOptions = Schema.Struct({ ...QuestionRef.fields, answers: Schema.Array(Schema.String) })
export type AnswerOptions = typeof AnswerOptions.Type

/** What a session spent itself, and together with its descendants. */
export const SessionUsage = Schema.Struct({
  own: Usage,
  total: Usage,
  /** The part of the total that providers did not count. */
  estimated: Estimated
})
export type SessionUsage = typeof SessionUsage.Type
