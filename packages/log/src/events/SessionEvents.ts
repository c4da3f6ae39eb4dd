/**
 * Defines every event of a session: durable events, which form its log, and live events, which only connected readers
 * see. Requests, compactions, branches and live shells have files of their own. An event carries only what is new (EV-9).
 * The envelope holds session and time once. Spec: specs/log.md.
 */
import { Schema } from "effect"
import { Address } from "../domain/Address.ts"
import { Ranges } from "../domain/HistoryPath.ts"
import { ActivityID, MessageID, SessionID } from "../domain/Identifiers.ts"
import { ImportedLog, ImportedRecord } from "../domain/Imported.ts"
import { SnapshotChange } from "../domain/Snapshot.ts"
import {
  ActivityOutcome,
  Budget,
  Delivery,
  JsonRecord,
  Location,
  ModelRef,
  Prompt,
  SessionOrigin,
  StoredError
} from "../domain/Values.ts"
import { editFields, withheldFields } from "../domain/Message.ts"
import { assistantMessageID, callID, durable, type Family, live, paths, spent } from "./Definition.ts"
import { optional } from "../support/Optional.ts"
import { shellDefinitions } from "./LiveShellEvents.ts"
import {
  ReasoningDelta,
  ReasoningEnded,
  ReasoningStarted,
  Retried,
  StepEnded,
  StepFailed,
  StepStarted,
  TextDelta,
  TextEnded,
  TextStarted,
  ToolCalled,
  ToolFailed,
  ToolInputDelta,
  ToolInputEnded,
  ToolInputStarted,
  ToolProgress,
  ToolSuccess
} from "./StepEvents.ts"

// Defines the events of branches, forks and undo: where history continues, and what that did to files.

/** The id of a git tree in the private store. */
const SnapshotID = Schema.String.pipe(Schema.pattern(/^[0-9a-f]{40,64}$/))

/** The history continues after this message, or from the start. `path` is the history up to there (HP-2). */
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
/** Earlier events repeat the history of session `from` up to a message. Cost and tokens count from here. */
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

// Defines the events of compactions and of pruned results: what the model is shown of the history.

const CompactionReason = Schema.Literal("auto", "manual")
export const CompactionStarted = durable("compactions", "session.next.compaction.started", 1, {
  messageID: MessageID,
  reason: CompactionReason
})
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
  /** Prompts from this sequence number on are verbatim after the checkpoint: no model has answered them (CP-49). */
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
/** Tool results up to the message `through` are placeholders; -1 shows all again. Stored data stays. */
export const ContextPruned = durable("compactions", "session.next.context.pruned", 1, { through: Schema.Int })

/** The model is shown something else in place of a message or of a call's result; the last edit holds (CP-440). */
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

export const CompactionDelta = live("session.next.compaction.delta", { messageID: MessageID, text: Schema.String })

export { Envelope, type Family } from "./Definition.ts"
export * from "./StepEvents.ts"

/** The first event of every log: the session and its settings (LG-2). */
export const SessionCreated = durable("about", "session.created", 1, {
  location: Location,
  agent: optional(Schema.NonEmptyString),
  model: optional(ModelRef),
  title: optional(Schema.String),
  /** The title is the beginning of the first prompt, until the session is named (NM-2). */
  provisional: optional(Schema.Literal(true)),
  parentID: optional(SessionID),
  ...SessionOrigin.fields,
  instructions: optional(Schema.String)
})

/** The address under which clients find the session. `root` is the folder that the agent sees as `/`. */
export const Addressed = durable("about", "session.next.addressed", 1, {
  address: Address,
  root: optional(Schema.NonEmptyString)
})
/** The session uses another agent from the next safe boundary on. */
export const AgentSwitched = durable("about", "session.next.agent.switched", 1, {
  messageID: MessageID,
  agent: Schema.NonEmptyString
})
/** The session uses another model from the next safe boundary on. */
export const ModelSwitched = durable("about", "session.next.model.switched", 1, {
  messageID: MessageID,
  model: ModelRef
})
export const Moved = durable("about", "session.next.moved", 1, {
  location: Location,
  subdirectory: optional(Schema.String)
})
/** The session has another title; `by` a model or a prompt, if no person chose it. Cost is that of the request. */
export const Renamed = durable("about", "session.next.renamed", 1, {
  title: Schema.String,
  by: optional(Schema.Literal("model", "prompt")),
  ...spent
})

export const Prompted = durable("prompts", "session.next.prompted", 1, {
  messageID: MessageID,
  prompt: Prompt,
  delivery: Delivery
})
/** A prompt entered the inbox. `prompt` includes its expansion. */
export const PromptAdmitted = durable("prompts", "session.next.prompt.admitted", 1, {
  messageID: MessageID,
  prompt: Prompt,
  delivery: Delivery
})
/** `timeCreated` is the time of admission, in milliseconds since the epoch. */
export const PromptPromoted = durable("prompts", "session.next.prompt.promoted", 1, {
  messageID: MessageID,
  prompt: Prompt,
  timeCreated: Schema.Int
})
/** A waiting prompt was withdrawn: no model gets it. Its id stays taken. */
export const PromptWithdrawn = durable("prompts", "session.next.prompt.withdrawn", 1, { messageID: MessageID })
/** Retired: decoded, never emitted, ignored by projections. */
export const InterruptRequested = durable("prompts", "session.next.interrupt.requested", 1, {})

/** An activity started. `trigger` is what opened it. */
export const ActivityStarted = durable("steps", "session.next.activity.started", 1, {
  activityID: ActivityID,
  trigger: Schema.Literal("steer", "queue", "resume")
})
/** An activity ended. `error` says why it failed or was interrupted. */
export const ActivitySettled = durable("steps", "session.next.activity.settled", 1, {
  activityID: ActivityID,
  outcome: ActivityOutcome,
  error: optional(StoredError),
  /** When it stopped, if that was before this event: its process died. Milliseconds since the epoch. */
  stoppedAt: optional(Schema.Int)
})

/**
 * The part of a request that is not history, as changes since the previous frame. It allows a turn's request to be
 * shown again. `hash` covers the whole frame; `tools.defined` holds new and changed definitions.
 */
export const RequestFramed = durable("requests", "session.next.request.framed", 1, {
  hash: Schema.NonEmptyString,
  system: optional(Schema.Array(Schema.String)),
  /** The system texts contain the system messages up to this sequence number. */
  baselineSeq: optional(Schema.Int),
  tools: optional(
    Schema.Struct({
      offered: Schema.Array(Schema.String),
      defined: Schema.Array(
        Schema.Struct({
          name: Schema.NonEmptyString,
          description: optional(Schema.String),
          parameters: JsonRecord
        })
      )
    })
  ),
  settings: optional(JsonRecord),
  /**
   * The system texts introduce a new baseline: its index in `system`, or its text if a hook changed it there, and what
   * it tells of each context source. `system` and `baselineSeq` are present then.
   */
  context: optional(
    Schema.Struct({ baseline: Schema.Union(Schema.NonNegativeInt, Schema.String), snapshot: SnapshotChange })
  )
})

/** Instruction files found by reads, as canonical paths. The model sees them from the next safe boundary on. */
export const InstructionsDiscovered = durable("requests", "session.next.instructions.discovered", 1, {
  paths: Schema.Array(Schema.NonEmptyString)
})

/** A system message about a change of the context, shown to the model. `snapshot` is what it tells, by source. */
export const ContextUpdated = durable("requests", "session.next.context.updated", 1, {
  messageID: MessageID,
  text: Schema.String,
  snapshot: optional(SnapshotChange)
})
/** A message of the runtime or the host, shown to the model as user text. */
export const Synthetic = durable("requests", "session.next.synthetic", 1, { messageID: MessageID, text: Schema.String })

/** A shell command of the host starts: a message. The events of live shells are in `LiveShellEvents.ts`. */
export const ShellStarted = durable("calls", "session.next.shell.started", 1, {
  messageID: MessageID,
  callID,
  command: Schema.String
})
export const ShellEnded = durable("calls", "session.next.shell.ended", 1, { callID, output: Schema.String })

const question = { assistantMessageID, callID }
/** One answer to each question of the call, in order. */
export const QuestionAnswered = durable("decisions", "session.next.question.answered", 1, {
  ...question,
  answers: Schema.Array(Schema.String)
})
/** A person declined to answer the call's questions. */
export const QuestionDismissed = durable("decisions", "session.next.question.dismissed", 1, question)

/** A decision about a call by a person or by an approval that a person saved. Decisions by rules are not recorded. */
export const PermissionDecided = durable("decisions", "session.next.permission.decided", 1, {
  ...question,
  permission: Schema.String,
  /** What the call acts on, truncated; the call has the full text. */
  resources: Schema.Array(Schema.String),
  /** `approved`: earlier approvals allowed it. The others are a person's answers. */
  decision: Schema.Literal("once", "session", "always", "declined", "corrected", "approved"),
  /** The patterns that the answer saves, for the session or permanently. */
  patterns: optional(Schema.Array(Schema.String)),
  /** The fingerprint of the tool that the patterns apply to. */
  definition: optional(Schema.String),
  /** The numbers of the approvals that the answer saved. */
  saved: optional(Schema.Array(Schema.Int)),
  /** The numbers of the saved approvals that allowed all or part of it. */
  used: optional(Schema.Array(Schema.Int)),
  /** The user id of the process that made the decision. */
  uid: optional(Schema.Int)
})
export const PermissionRevoked = durable("decisions", "session.next.permission.revoked", 1, {
  number: Schema.Int,
  permission: Schema.String,
  resource: Schema.String,
  uid: optional(Schema.Int)
})

/** Sets the total budget of the session and its children from now on; without fields there is no limit. */
export const BudgetSet = durable("about", "session.next.budget.set", 1, { budget: Budget })

/**
 * An import from a foreign log. `record`: the events since the previous event of this type hold that record of the log,
 * except for the difference (IM-20). The model is not shown it.
 */
export const Imported = durable("about", "session.next.imported", 1, {
  record: optional(ImportedRecord),
  /** How far the import has come. */
  log: optional(ImportedLog),
  ...spent
})

/** The durable types that this build writes and folds, each at its current version. */
export const durableDefinitions = [
  SessionCreated,
  Addressed,
  AgentSwitched,
  ModelSwitched,
  Moved,
  Renamed,
  Prompted,
  PromptAdmitted,
  PromptPromoted,
  PromptWithdrawn,
  InterruptRequested,
  ActivityStarted,
  ActivitySettled,
  RequestFramed,
  InstructionsDiscovered,
  ContextUpdated,
  Synthetic,
  ShellStarted,
  ShellEnded,
  StepStarted,
  StepEnded,
  StepFailed,
  TextStarted,
  TextEnded,
  ReasoningStarted,
  ReasoningEnded,
  ToolInputStarted,
  ToolInputEnded,
  ToolCalled,
  ToolProgress,
  ToolSuccess,
  ToolFailed,
  Retried,
  CompactionRequested,
  CompactionStarted,
  CompactionEnded,
  CompactionFailed,
  ContextPruned,
  ContextEdited,
  PartWithheld,
  LeafMoved,
  BranchSummarized,
  Labeled,
  Forked,
  FilesChanged,
  FilesRestored,
  QuestionAnswered,
  QuestionDismissed,
  PermissionDecided,
  PermissionRevoked,
  BudgetSet,
  Imported,
  ...shellDefinitions
] as const

/** The live types. */
export const liveDefinitions = [TextDelta, ReasoningDelta, ToolInputDelta, CompactionDelta] as const

type DurableDefinition = (typeof durableDefinitions)[number]
type DraftOf<D> = D extends DurableDefinition ? { readonly type: D["type"]; readonly data: D["data"]["Type"] } : never

export type DurableType = DurableDefinition["type"]
/** The names of all durable types. */
export const durableTypes: ReadonlyArray<DurableType> = /* @__PURE__ */ durableDefinitions.map(({ type }) => type)

/** An event to append: its type and payload. The log assigns id, sequence number, position and time. */
export type Draft = DraftOf<DurableDefinition>
/** A stored event, decoded to the current shape. */
// Annotated, because it builds the schemas of all events; a bundle that does not use it leaves it out.
export const SessionEvent = /* @__PURE__ */ (() => Schema.Union(...durableDefinitions.map(({ event }) => event)))()
export type SessionEvent = typeof SessionEvent.Type
/** The stored event of one type. */
export type EventOfType<Type extends DurableType> = Extract<SessionEvent, { readonly type: Type }>
/**
 * An event of one of the families. A fold over all events ends with `default: event satisfies EventIn<...>`, which names the
 * families that it ignores in whole or in part (AR-6).
 */
export type EventIn<Of extends Family> = { readonly type: Extract<DurableDefinition, { readonly family: Of }>["type"] }
/** The event with its keys in the documented order, in which every output has them (CL-12, HT-44). */
export const inOrder = ({ created, data, id, position, seq, sessionID, type, version }: SessionEvent) => ({
  position,
  seq,
  id,
  type,
  version,
  sessionID,
  created,
  data
})

export const LiveEvent = /* @__PURE__ */ (() => Schema.Union(...liveDefinitions.map(({ event }) => event)))()
export type LiveEvent = typeof LiveEvent.Type

export const draft = <Type extends DurableType>(
  type: Type,
  data: Extract<Draft, { readonly type: Type }>["data"]
): Extract<Draft, { readonly type: Type }> => ({ type, data }) as Extract<Draft, { readonly type: Type }>
