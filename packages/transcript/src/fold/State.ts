/**
 * The state of the fold. Apart from open runs it is small and can be stored as a checkpoint, from which the fold
 * continues as if from all events. Pure. Spec: FI-36, FI-98, FI-105 in specs/files.md.
 */
import { Schema, Struct } from "effect"
import { Address } from "@daybook/log/domain/Address"
import type { Session } from "@daybook/log/domain/Message"
import { defaultAgent, ModelRef, SessionOrigin, Tokens } from "@daybook/log/domain/Values"
import { agentDirectory, type Block, ContentBlock, RunID, StateWord } from "../row/Rows.ts"
import { optional, present } from "@daybook/log/support/Optional"

// Texts of answers as the fold holds them: short texts whole, long texts as references to their events.

/** A reference to a long text, with the sizes that are needed before it is read. */
export const StoredText = Schema.Struct({
  /** The sequence number of the event that ended the text. */
  seq: Schema.Int,
  /** UTF-16 code units. */
  length: Schema.Int,
  /** UTF-8 bytes of the text as a JSON string. */
  bytes: Schema.Int
})
export type StoredText = typeof StoredText.Type

/** A text of an answer: the text, or a reference to it. */
export const Text = Schema.Union(Schema.String, StoredText)
export type Text = typeof Text.Type

/** UTF-16 code units of a text that is held whole, at most. */
export const longestHeld = 16 * 1024

/** Stands between the texts of two messages of a run (FR-7). */
export const separator = "\n\n"

/** Whether the text is only a reference. */
export const isStored = (text: unknown): text is StoredText => typeof text === "object"

/** Holds the text, or refers to its event if it is long. */
export const remember = (text: string, seq: number): Text =>
  text.length <= longestHeld ? text : { seq, length: text.length, bytes: Buffer.byteLength(JSON.stringify(text)) }

/** The first code units, copied: a slice would retain the whole text. */
export const headOf = (text: string, length: number): string =>
  text.length <= length ? text : Buffer.from(text.slice(0, length), "utf16le").toString("utf16le")

/** Code units of all texts. */
export const lengthOf = (texts: ReadonlyArray<Text>): number => texts.reduce((sum, { length }) => sum + length, 0)

/** The state while no run is open; ledgers store it. */
export const Checkpoint = Schema.Struct({
  /** Raised when the fold stores or writes something else; an older checkpoint is then not used. */
  version: Schema.Literal(3),
  sessionID: Schema.String,
  /** The last event's sequence number and position; -1 and 0 before the first. */
  seq: Schema.Int,
  position: Schema.Int,
  createdAtMs: Schema.Int,
  createdPosition: Schema.Int,
  /** The latest time of any event so far; never decreases. */
  updatedAtMs: Schema.Int,
  address: optional(Address),
  /** The host folder that the agent sees as `/`. */
  root: optional(Schema.String),
  /** The session's folder on the host. */
  directory: Schema.String,
  /** The folder shown to clients: the folder of the last run, or of a later move. */
  cwd: Schema.String,
  /** The agent at creation; part of the address of a session that was given none. */
  firstAgent: optional(Schema.String),
  /** The current agent. */
  agent: Schema.String,
  model: optional(ModelRef),
  title: optional(Schema.String),
  parentID: optional(Schema.String),
  ...SessionOrigin.fields,
  instructions: optional(Schema.String),
  word: StateWord,
  lastStatus: optional(Schema.Literal("ok", "error", "cancelled")),
  lastRun: optional(RunID),
  clientID: optional(Schema.String),
  /** The global position of the event that began the last run. */
  runStartedPosition: optional(Schema.Int),
  /** US dollars. */
  cost: Schema.Finite,
  tokens: Tokens,
  /** The text of the last completed run, in pieces to be joined. */
  latest: optional(Schema.Array(Text)),
  /** The number of lines so far. */
  lines: Schema.Struct({ messages: Schema.Int, events: Schema.Int }),
  lastStep: optional(
    Schema.Struct({ seq: Schema.Int, messageID: Schema.String, agent: Schema.String, model: ModelRef })
  ),
  /** Tool results up to this sequence number are shown as placeholders. */
  pruned: optional(Schema.Int),
  compactions: Schema.Int,
  /** Waiting prompts as they will be shown; their promotions lack the content. */
  waiting: Schema.Array(Schema.Struct({ id: Schema.String, content: Schema.Array(ContentBlock) })),
  /** Commands of the host without their output yet. */
  shells: Schema.Array(Schema.Struct({ callID: Schema.String, messageID: Schema.String, command: Schema.String }))
})
export type Checkpoint = typeof Checkpoint.Type

/** A run that has begun and not ended. */
export interface OpenRun {
  readonly id: RunID
  readonly activityID: string
  readonly clientID: string | undefined
  /** Its assistant messages in order, each with the texts of its ended step. */
  readonly texts: ReadonlyArray<{ readonly messageID: string; readonly texts: ReadonlyArray<EndedText> }>
}

type ToolResultBlock = Extract<Block, { readonly type: "tool_result" }>
/** An ended text, and its beginning as far as the run's `message` row may show it. */
export interface EndedText {
  readonly text: Text
  readonly head: string
}
export type StepText = { readonly kind: "text"; readonly id: string; readonly said: EndedText | undefined }
export interface StepCall {
  readonly kind: "call"
  readonly id: string
  readonly name: string
  /** Set once the call is made; before that, it is only model output. */
  readonly input: unknown
  readonly made: boolean
  readonly result: { readonly atMs: number; readonly block: ToolResultBlock } | undefined
}

/** A step without its end, or without the result of one of its calls. */
export interface OpenStep {
  readonly messageID: string
  readonly model: ModelRef
  /** Its row is written; `parts` holds the calls whose rows are not. */
  readonly ended: boolean
  /** In the order in which they began. */
  readonly parts: ReadonlyArray<StepText | StepCall>
}

/** The whole state of the fold. */
export interface State extends Checkpoint {
  /** A started activity whose run is named by the next event. */
  readonly opening: string | undefined
  readonly run: OpenRun | undefined
  readonly steps: ReadonlyArray<OpenStep>
}

/** The state before the first event. */
export const initial: State = {
  version: 3,
  sessionID: "",
  seq: -1,
  position: 0,
  createdAtMs: 0,
  createdPosition: 0,
  updatedAtMs: 0,
  directory: "/",
  cwd: "/",
  agent: defaultAgent,
  word: "idle",
  cost: 0,
  tokens: { input: 0, output: 0, reasoning: 0, cache: { read: 0, write: 0 } },
  lines: { messages: 0, events: 0 },
  compactions: 0,
  waiting: [],
  shells: [],
  opening: undefined,
  run: undefined,
  steps: []
}

/** The session's present state, to render event rows from; correct until it moves or changes its model. */
export const ofSession = ({ address, agent, createdAt, id, location, model, root, title }: Session): State => ({
  ...initial,
  sessionID: id,
  createdAtMs: createdAt,
  directory: location.directory,
  cwd: agentDirectory(root, location.directory),
  ...present({ address, root, agent, model, title })
})

/** Whether no run and no step is open, so that the state is its own checkpoint. */
export const isQuiet = ({ opening, run, steps }: State): boolean =>
  opening === undefined && run === undefined && steps.length === 0

export const toCheckpoint = (state: State): Checkpoint => Struct.omit(state, "opening", "run", "steps")

export const fromCheckpoint = (checkpoint: Checkpoint): State => ({
  ...checkpoint,
  opening: undefined,
  run: undefined,
  steps: []
})
