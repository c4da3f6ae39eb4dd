/**
 * What the fold of a session's events remembers. Everything but what a run leaves open is small and can be stored as a
 * checkpoint, from which the fold goes on as if it had seen all events. Pure. Spec: FI-36 in specs/files.md.
 */
import { Address, defaultAgent, ModelRef, Tokens } from "@daybook/core"
import { Schema, Struct } from "effect"
import { ContentBlock, RunID, StateWord, type Block } from "../Rows.ts"
import { Text } from "./Texts.ts"

const optional = <S extends Schema.Schema.All>(schema: S) => Schema.optionalWith(schema, { exact: true })

/** The state while no run is open: what a ledger stores. */
export const Checkpoint = Schema.Struct({
  /** Raised when the fold comes to remember or to write something else: a checkpoint of before is then not gone on from. */
  version: Schema.Literal(2),
  sessionID: Schema.String,
  /** The last event's places; -1 and 0 before the first. */
  seq: Schema.Int,
  position: Schema.Int,
  createdAtMs: Schema.Int,
  createdPosition: Schema.Int,
  /** The latest time of any event so far: it never goes back. */
  updatedAtMs: Schema.Int,
  address: optional(Address),
  /** The host folder that is `/` for the agent. */
  root: optional(Schema.String),
  /** The session's folder on the host. */
  directory: Schema.String,
  /** The folder that clients are shown: that of the last run, or to which the session moved since. */
  cwd: Schema.String,
  /** The agent that it was created for: part of the address of a session that was given none. */
  firstAgent: optional(Schema.String),
  /** Whom it talks to now. */
  agent: Schema.String,
  model: optional(ModelRef),
  title: optional(Schema.String),
  parentID: optional(Schema.String),
  word: StateWord,
  lastStatus: optional(Schema.Literal("ok", "error", "cancelled")),
  lastRun: optional(RunID),
  /** The client's id of the last run that had one. */
  clientID: optional(Schema.String),
  /** Global place of the event that began the last run. */
  runStartedPosition: optional(Schema.Int),
  /** US dollars. */
  cost: Schema.Number,
  tokens: Tokens,
  /** The text of the last run that completed: these, one directly behind the other. */
  latest: optional(Schema.Array(Text)),
  /** Lines so far. */
  lines: Schema.Struct({ messages: Schema.Int, events: Schema.Int }),
  lastStep: optional(
    Schema.Struct({ seq: Schema.Int, messageID: Schema.String, agent: Schema.String, model: ModelRef })
  ),
  /** Results of tools up to this place are shown as placeholders. */
  pruned: optional(Schema.Int),
  compactions: Schema.Int,
  /** The prompts that wait, as they will be shown: their promotions do not carry what they came to. */
  waiting: Schema.Array(Schema.Struct({ id: Schema.String, content: Schema.Array(ContentBlock) })),
  /** Commands of the host without their output yet. */
  shells: Schema.Array(Schema.Struct({ callID: Schema.String, messageID: Schema.String, command: Schema.String }))
})
export type Checkpoint = typeof Checkpoint.Type

/** A run that has begun and has not ended. */
export interface OpenRun {
  readonly id: RunID
  readonly activityID: string
  readonly clientID: string | undefined
  /** Its assistant messages in order, each with the texts that it has when it ends. */
  readonly texts: ReadonlyArray<{ readonly messageID: string; readonly texts: ReadonlyArray<Said> }>
}

type ToolResultBlock = Extract<Block, { readonly type: "tool_result" }>
/** A text that ended, and how it begins as far as the run's `message` row may show it. */
export interface Said {
  readonly text: Text
  readonly head: string
}
export type StepText = { readonly kind: "text"; readonly id: string; readonly said: Said | undefined }
export interface StepCall {
  readonly kind: "call"
  readonly id: string
  readonly name: string
  /** Set once the call was made: before that it is only words of the model. */
  readonly input: unknown
  readonly made: boolean
  readonly result: { readonly atMs: number; readonly block: ToolResultBlock } | undefined
}

/** A step whose end, or the result of one of whose calls, is still to come. */
export interface OpenStep {
  readonly messageID: string
  readonly model: ModelRef
  /** Its row is written; what is left of `parts` are the calls whose rows are not. */
  readonly ended: boolean
  /** In the order in which they began. */
  readonly parts: ReadonlyArray<StepText | StepCall>
}

export interface State extends Checkpoint {
  /** An activity that began, and whose run is named after the event that comes next. */
  readonly opening: string | undefined
  readonly run: OpenRun | undefined
  readonly steps: ReadonlyArray<OpenStep>
}

/** Before the first event. */
export const initial: State = {
  version: 2,
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

/** Whether no run and no step is open: the state is its own checkpoint. */
export const isQuiet = ({ opening, run, steps }: State): boolean =>
  opening === undefined && run === undefined && steps.length === 0

/** What to store of a quiet state. */
export const toCheckpoint = (state: State): Checkpoint => Struct.omit(state, "opening", "run", "steps")

/** The state that the checkpoint was made of. */
export const fromCheckpoint = (checkpoint: Checkpoint): State => ({
  ...checkpoint,
  opening: undefined,
  run: undefined,
  steps: []
})
