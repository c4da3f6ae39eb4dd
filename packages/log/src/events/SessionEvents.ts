/**
 * Defines every event of a session: durable events, which form its log, and live events, which only connected readers
 * see. An event carries only what is new (EV-9). The envelope holds session and time once (specs/decisions/0002). Spec:
 * specs/events.md.
 */
import { Schema } from "effect"
import { Address } from "../domain/Address.ts"
import { Ranges } from "../domain/HistoryPath.ts"
import { ActivityID, MessageID, SessionID } from "../domain/Identifiers.ts"
import { ImportedLog, ImportedRecord } from "../domain/Imported.ts"
import { JsonValue } from "../domain/Json.ts"
import { SnapshotChange } from "../domain/Snapshot.ts"
import {
  ActivityOutcome,
  Budget,
  Delivery,
  JsonRecord,
  Location,
  ModelRef,
  Price,
  Prompt,
  ProviderMetadata,
  SessionOrigin,
  StoredError,
  Tokens,
  ToolContent
} from "../domain/Values.ts"
import { durable, live } from "./Definition.ts"
import { shellDefinitions } from "./LiveShellEvents.ts"

export { Envelope } from "./Definition.ts"

const optional = <S extends Schema.Schema.All>(schema: S) => Schema.optionalWith(schema, { exact: true })

const assistantMessageID = MessageID
const providerCall = Schema.Struct({ executed: Schema.Boolean, metadata: optional(ProviderMetadata) })
/** The token counts are Daybook's estimate, not the provider's. */
const estimated = optional(Schema.Literal(true))
/** Cost and tokens of requests. */
const spent = { cost: optional(Schema.Finite), tokens: optional(Tokens), estimated }
const textID = Schema.NonEmptyString
/** The id of a git tree in the private store. */
const SnapshotID = Schema.String.pipe(Schema.pattern(/^[0-9a-f]{40,64}$/))
const callID = Schema.NonEmptyString

/** The first event of every log: the session and its settings (LG-2). */
export const SessionCreated = durable("session.created", 1, {
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
export const Addressed = durable("session.next.addressed", 1, {
  address: Address,
  root: optional(Schema.NonEmptyString)
})
/** The session uses another agent from the next safe boundary on. */
export const AgentSwitched = durable("session.next.agent.switched", 1, {
  messageID: MessageID,
  agent: Schema.NonEmptyString
})
/** The session uses another model from the next safe boundary on. */
export const ModelSwitched = durable("session.next.model.switched", 1, { messageID: MessageID, model: ModelRef })
/** The session moved to another Location. */
export const Moved = durable("session.next.moved", 1, { location: Location, subdirectory: optional(Schema.String) })
/**
 * The session has another title. `by`: no person chose it, but a model, or the beginning of the first prompt. Cost and
 * tokens are those of the request for it.
 */
export const Renamed = durable("session.next.renamed", 1, {
  title: Schema.String,
  by: optional(Schema.Literal("model", "prompt")),
  ...spent
})

/** A prompt that was visible as soon as it was recorded. Decoded for old logs, never emitted. */
export const Prompted = durable("session.next.prompted", 1, {
  messageID: MessageID,
  prompt: Prompt,
  delivery: Delivery
})
/** A prompt entered the inbox. `prompt` includes its expansion. */
export const PromptAdmitted = durable("session.next.prompt.admitted", 1, {
  messageID: MessageID,
  prompt: Prompt,
  delivery: Delivery
})
/** `timeCreated` is the time of admission, in milliseconds since the epoch. */
export const PromptPromoted = durable("session.next.prompt.promoted", 1, {
  messageID: MessageID,
  prompt: Prompt,
  timeCreated: Schema.Int
})
/** A waiting prompt was withdrawn: no model gets it. Its id stays taken. */
export const PromptWithdrawn = durable("session.next.prompt.withdrawn", 1, { messageID: MessageID })
/** Retired: decoded, never emitted, ignored by projections. */
export const InterruptRequested = durable("session.next.interrupt.requested", 1, {})

/** An activity started. `trigger` is what opened it. */
export const ActivityStarted = durable("session.next.activity.started", 1, {
  activityID: ActivityID,
  trigger: Schema.Literal("steer", "queue", "resume")
})
/** An activity ended. `error` says why it failed or was interrupted. */
export const ActivitySettled = durable("session.next.activity.settled", 1, {
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
export const RequestFramed = durable("session.next.request.framed", 1, {
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
export const InstructionsDiscovered = durable("session.next.instructions.discovered", 1, {
  paths: Schema.Array(Schema.NonEmptyString)
})

/** A system message about a change of the context, shown to the model. `snapshot` is what it tells, by source. */
export const ContextUpdated = durable("session.next.context.updated", 1, {
  messageID: MessageID,
  text: Schema.String,
  snapshot: optional(SnapshotChange)
})
/** A message of the runtime or the host, shown to the model as user text. */
export const Synthetic = durable("session.next.synthetic", 1, { messageID: MessageID, text: Schema.String })

/** A shell command of the host starts: a message. The events of live shells are in `LiveShellEvents.ts`. */
export const ShellStarted = durable("session.next.shell.started", 1, {
  messageID: MessageID,
  callID,
  command: Schema.String
})
/** A shell command of the host ended. */
export const ShellEnded = durable("session.next.shell.ended", 1, { callID, output: Schema.String })

/** A request to the provider starts; its parts belong to this assistant message. */
export const StepStarted = durable("session.next.step.started", 1, {
  assistantMessageID,
  agent: Schema.NonEmptyString,
  model: ModelRef,
  snapshot: optional(Schema.String),
  /** The request's estimated tokens and the model's price: an unfinished step is charged with them (EX-B5). */
  inputEstimate: optional(Schema.NonNegativeInt),
  price: optional(Price)
})
/** `cost` is in US dollars. */
export const StepEnded = durable("session.next.step.ended", 2, {
  assistantMessageID,
  finish: Schema.NonEmptyString,
  cost: Schema.Finite,
  tokens: Tokens,
  estimated,
  snapshot: optional(Schema.String),
  files: optional(Schema.Array(Schema.String))
})
/** A request failed. `cost` and `tokens` are what it used. */
export const StepFailed = durable("session.next.step.failed", 2, { assistantMessageID, error: StoredError, ...spent })

/** A text part starts. */
export const TextStarted = durable("session.next.text.started", 1, { assistantMessageID, textID })
/** A text part ended; `text` is complete. */
export const TextEnded = durable("session.next.text.ended", 1, { assistantMessageID, textID, text: Schema.String })

/** A reasoning part starts. */
export const ReasoningStarted = durable("session.next.reasoning.started", 1, {
  assistantMessageID,
  reasoningID: textID,
  providerMetadata: optional(ProviderMetadata)
})
/** A reasoning part ended; `text` is complete. */
export const ReasoningEnded = durable("session.next.reasoning.ended", 1, {
  assistantMessageID,
  reasoningID: textID,
  text: Schema.String,
  providerMetadata: optional(ProviderMetadata)
})

/** The model starts to write a call's input. */
export const ToolInputStarted = durable("session.next.tool.input.started", 1, {
  assistantMessageID,
  callID,
  name: Schema.NonEmptyString
})
/** `text` is the raw input, as the model wrote it. */
export const ToolInputEnded = durable("session.next.tool.input.ended", 1, {
  assistantMessageID,
  callID,
  text: Schema.String
})
/** A complete tool call with its decoded input; stored before the tool runs. */
export const ToolCalled = durable("session.next.tool.called", 1, {
  assistantMessageID,
  callID,
  tool: Schema.NonEmptyString,
  input: JsonRecord,
  provider: providerCall
})
/** At most one per second and call, of a few KiB (TO-P1); finer progress is live only. */
export const ToolProgress = durable("session.next.tool.progress", 1, {
  assistantMessageID,
  callID,
  structured: JsonRecord,
  content: Schema.Array(ToolContent)
})
/** `result` is the provider's result value, stored only for provider-executed tools. */
export const ToolSuccess = durable("session.next.tool.success", 1, {
  assistantMessageID,
  callID,
  structured: JsonRecord,
  content: Schema.Array(ToolContent),
  outputPaths: optional(Schema.Array(Schema.String)),
  result: optional(JsonValue),
  provider: providerCall
})
/** A tool call failed. */
export const ToolFailed = durable("session.next.tool.failed", 1, {
  assistantMessageID,
  callID,
  error: StoredError,
  result: optional(JsonValue),
  provider: providerCall
})

/** A failed provider attempt. The next attempt starts `waitMs` after this event. `attempt` counts from 1. */
export const Retried = durable("session.next.retried", 1, {
  attempt: Schema.Int,
  waitMs: optional(Schema.NonNegativeInt),
  ...spent,
  error: Schema.Struct({
    message: Schema.String,
    statusCode: optional(Schema.Int),
    isRetryable: Schema.Boolean,
    responseHeaders: optional(Schema.Record({ key: Schema.String, value: Schema.String })),
    responseBody: optional(Schema.String),
    metadata: optional(Schema.Record({ key: Schema.String, value: Schema.String }))
  })
})

const CompactionReason = Schema.Literal("auto", "manual")
/** A compaction starts. */
export const CompactionStarted = durable("session.next.compaction.started", 1, {
  messageID: MessageID,
  reason: CompactionReason
})
const paths = Schema.Array(Schema.String)

/** A compaction is requested; it runs at the next safe boundary. */
export const CompactionRequested = durable("session.next.compaction.requested", 1, { messageID: MessageID })
/** `text` is the summary, `recent` the serialized recent context. */
export const CompactionEnded = durable("session.next.compaction.ended", 2, {
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
export const CompactionFailed = durable("session.next.compaction.failed", 1, {
  messageID: MessageID,
  error: StoredError,
  ...spent
})
/**
 * Tool results in messages up to `through` are shown as placeholders; -1 shows all again. Stored data does not change.
 */
export const ContextPruned = durable("session.next.context.pruned", 1, { through: Schema.Int })

/**
 * The history continues after this message, without it before the first message. `path` is the history up to there;
 * later events follow it (HP-2).
 */
export const LeafMoved = durable("session.next.leaf.moved", 1, { messageID: optional(MessageID), path: Ranges })
/** A summary of the branch that was left, shown to the model. `from` was its leaf. */
export const BranchSummarized = durable("session.next.branch.summarized", 1, {
  messageID: MessageID,
  text: Schema.String,
  from: optional(MessageID),
  readFiles: optional(paths),
  modifiedFiles: optional(paths),
  ...spent
})
/** A person's label of a message, in place of an earlier one; without `label` the message has none. */
export const Labeled = durable("session.next.labeled", 1, {
  messageID: MessageID,
  label: optional(Schema.NonEmptyString)
})
/**
 * The events before this one repeat the history of session `from` up to a message. Cost and tokens of this session
 * count from here.
 */
export const Forked = durable("session.next.forked", 1, { from: SessionID, messageID: optional(MessageID) })

/**
 * The tools of a turn changed files of the Location. `before` and `after` are snapshots in the private store; without
 * them no snapshot was taken, and `problem` says why. `files` are the first of `count` changed paths, relative to the root
 * of the work tree; `omitted` are files that the snapshots do not hold.
 */
export const FilesChanged = durable("session.next.files.changed", 1, {
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
export const FilesRestored = durable("session.next.files.restored", 1, {
  before: optional(SnapshotID),
  after: optional(SnapshotID),
  redoes: optional(Schema.NonNegativeInt),
  leafID: optional(MessageID),
  files: paths,
  left: paths,
  counts: Schema.Struct({ changed: Schema.NonNegativeInt, conflicts: Schema.NonNegativeInt })
})

const question = { assistantMessageID, callID }
/** One answer to each question of the call, in order. */
export const QuestionAnswered = durable("session.next.question.answered", 1, {
  ...question,
  answers: Schema.Array(Schema.String)
})
/** A person declined to answer the call's questions. */
export const QuestionDismissed = durable("session.next.question.dismissed", 1, question)

/** A decision about a call by a person or by an approval that a person saved. Decisions by rules are not recorded. */
export const PermissionDecided = durable("session.next.permission.decided", 1, {
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
/** An approval that this session saved was revoked. */
export const PermissionRevoked = durable("session.next.permission.revoked", 1, {
  number: Schema.Int,
  permission: Schema.String,
  resource: Schema.String,
  uid: optional(Schema.Int)
})

/** Sets the total budget of the session and its children from now on; without fields there is no limit. */
export const BudgetSet = durable("session.next.budget.set", 1, { budget: Budget })

/**
 * An import from a foreign log. `record`: the events since the previous event of this type hold that record of the log,
 * except for the difference (IM-20). The model is not shown it.
 */
export const Imported = durable("session.next.imported", 1, {
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

/** A piece of a text part. */
export const TextDelta = live("session.next.text.delta", { assistantMessageID, textID, delta: Schema.String })
/** A piece of a reasoning part. */
export const ReasoningDelta = live("session.next.reasoning.delta", {
  assistantMessageID,
  reasoningID: textID,
  delta: Schema.String
})
/** A piece of a call's raw input. */
export const ToolInputDelta = live("session.next.tool.input.delta", {
  assistantMessageID,
  callID,
  delta: Schema.String
})
/** A piece of a compaction's summary. */
export const CompactionDelta = live("session.next.compaction.delta", { messageID: MessageID, text: Schema.String })

/** The live types. */
export const liveDefinitions = [TextDelta, ReasoningDelta, ToolInputDelta, CompactionDelta] as const

type DurableDefinition = (typeof durableDefinitions)[number]
type DraftOf<D> = D extends DurableDefinition ? { readonly type: D["type"]; readonly data: D["data"]["Type"] } : never

/** The name of a durable type, without its version. */
export type DurableType = DurableDefinition["type"]

/** An event to append: its type and payload. The log assigns id, sequence number, position and time. */
export type Draft = DraftOf<DurableDefinition>
/** A stored event, decoded to the current shape. */
// Annotated, because it builds the schemas of all events; a bundle that does not use it leaves it out.
export const SessionEvent = /* @__PURE__ */ (() => Schema.Union(...durableDefinitions.map(({ event }) => event)))()
export type SessionEvent = typeof SessionEvent.Type
/** The stored event of one type. */
export type EventOfType<Type extends DurableType> = Extract<SessionEvent, { readonly type: Type }>
/** A live event. */
export const LiveEvent = /* @__PURE__ */ (() => Schema.Union(...liveDefinitions.map(({ event }) => event)))()
export type LiveEvent = typeof LiveEvent.Type

/** Builds a draft of the given type, checked by the compiler. */
export const draft = <Type extends DurableType>(
  type: Type,
  data: Extract<Draft, { readonly type: Type }>["data"]
): Extract<Draft, { readonly type: Type }> => ({ type, data }) as Extract<Draft, { readonly type: Type }>
