/** Sessions and messages as readers see them: the decoded projection. Spec: RQ-644, CP-440, CP-441. */
import { Schema, Struct } from "effect"
import { Address } from "./Address.ts"
import { Ranges } from "./HistoryPath.ts"
import { ActivityID, MessageID, SessionID } from "./Identifiers.ts"
import { ImportedLog } from "./Imported.ts"
import { JsonValue } from "./Json.ts"
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
  ToolContent,
  modelText
} from "./Values.ts"
import { optional } from "../support/Optional.ts"

// Defines what the model is shown in place of a message, or of the result of a call.

/** A call that stays in an edited answer, with its input. */
export const EditedCall = Schema.Struct({ callID: Schema.NonEmptyString, input: JsonRecord })

/** What an edit says of its target. */
export const editFields = {
  /** The call of the answer whose result is edited; absent: the message is. */
  callID: optional(Schema.NonEmptyString),
  /** Absent: the model is not shown the message; of a result it is told that it was removed. */
  content: optional(Schema.Array(ToolContent)),
  /** The calls that stay in an edited answer, with their results. Absent: none. */
  calls: optional(Schema.Array(EditedCall))
}

export const ContextEdit = Schema.Struct(editFields)
export type ContextEdit = typeof ContextEdit.Type

// Defines the parts of messages that are withheld from a model, because its server refused them.

/** What a refused part is; `input` is that of a call, `thinking` all that of an answer, with what its server attached. */
export const WithheldKind = Schema.Literal("image", "pdf", "text", "input", "thinking")
export type WithheldKind = typeof WithheldKind.Type

/** What an event says of a part of a message. */
export const withheldFields = {
  /** The call of the answer whose input or result has the part; absent: the message has it. */
  callID: optional(Schema.NonEmptyString),
  /** The place in the result's content, or in the prompt's expansion, else its files. Absent: its whole text. */
  index: optional(Schema.NonNegativeInt),
  kind: WithheldKind,
  model: ModelRef,
  /** Why the server refused it, in its words. Absent: the part is shown again. */
  reason: optional(Schema.String.pipe(Schema.maxLength(300)))
}

/** A part that one model is not shown. */
export const Withheld = Schema.Struct(withheldFields)
export type Withheld = typeof Withheld.Type

const kindNames = {
  image: "a picture",
  pdf: "a PDF document",
  text: "a text",
  input: "the input",
  thinking: "its thinking"
} as const

/** The event in a sentence for people. */
export const withheldText = ({ callID, kind, model, reason }: Withheld): string => {
  const place = callID === undefined ? "" : kind === "input" ? ` of call ${callID}` : ` of the result of call ${callID}`
  const part = `${kindNames[kind]}${place}`
  const name = `${model.providerID}/${model.id}`
  return reason === undefined
    ? `${name} is shown ${part} again`
    : `${name} is not shown ${part}: its server refused it (${reason})`
}

/** Whether both name the same part, withheld from the same model. */
export const samePart = (a: Withheld, b: Withheld): boolean =>
  a.callID === b.callID &&
  a.index === b.index &&
  a.kind === b.kind &&
  a.model.providerID === b.model.providerID &&
  a.model.id === b.model.id

/** A session's current state. Times are milliseconds since the epoch. */
export const Session = Schema.Struct({
  id: SessionID,
  parentID: optional(SessionID),
  location: Location,
  title: optional(Schema.String),
  /** The title is the beginning of the first prompt, until the session is named (NM-2). */
  provisional: optional(Schema.Literal(true)),
  agent: optional(Schema.String),
  model: optional(ModelRef),
  /** Cost in US dollars, and tokens, of all steps so far. */
  cost: Schema.Finite,
  tokens: Tokens,
  /** The last activity. `running` without a living process means that it was cut off (TU-13). */
  activity: optional(
    Schema.Struct({
      id: ActivityID,
      state: Schema.Literal("running", ...ActivityOutcome.literals),
      /** Why the activity failed or was interrupted. */
      error: optional(StoredError)
    })
  ),
  compaction: optional(
    Schema.Struct({
      id: MessageID,
      state: Schema.Literal("requested", "running"),
      /** A compaction requested while this one runs. */
      next: optional(MessageID)
    })
  ),
  /** Tool results in messages up to this sequence number are shown to the model as placeholders. */
  prunedSeq: optional(Schema.Int),
  /** The hash of the last request's frame (RQ-30). */
  frame: optional(Schema.String),
  /** The budget of the session and its children; absent: the host's limit applies. */
  budget: optional(Budget),
  /** The history path if the leaf was moved, as ranges of sequence numbers; the last has no end (HP-1). */
  path: optional(Ranges),
  /** The session is a fork: its events before `seq` repeat the history of another session up to a message (HP-30). */
  forked: optional(Schema.Struct({ from: SessionID, messageID: optional(MessageID), seq: Schema.Int })),
  /** What began the session; absent: a person or a program. */
  origin: optional(SessionOrigin),
  /** Instructions of this session alone; the model is shown them as a system text. */
  instructions: optional(Schema.String),
  /** The session's address for clients; without one, clients find it by its id. */
  address: optional(Address),
  /** The folder that its agent sees as `/`. */
  root: optional(Schema.String),
  /** The foreign log that the session was imported from. */
  imported: optional(ImportedLog),
  createdAt: Schema.Int,
  updatedAt: Schema.Int
})
export type Session = typeof Session.Type

const base = {
  id: MessageID,
  /** The sequence number of the event that made the message visible; orders the transcript. */
  seq: Schema.Int,
  createdAt: Schema.Int,
  /** Edits of the context: what the model is shown in place of the message, or of results of its calls (CP-440). */
  edits: optional(Schema.Array(ContextEdit)),
  /** Parts that a model is not shown, because its server refused them (RQ-644). */
  withheld: optional(Schema.Array(Withheld))
}

/** A text of an answer, with the provider's metadata. */
export const TextPart = Schema.Struct({
  type: Schema.Literal("text"),
  id: Schema.String,
  /** Absent while the text is still being streamed. */
  text: optional(Schema.String),
  providerMetadata: optional(ProviderMetadata)
})
/** A block of reasoning, with the provider's metadata. */
export const ReasoningPart = Schema.Struct({
  type: Schema.Literal("reasoning"),
  id: Schema.String,
  text: optional(Schema.String),
  providerMetadata: optional(ProviderMetadata)
})
/** A tool call in its states: pending -> running -> completed | error. */
export const ToolPart = Schema.Struct({
  type: Schema.Literal("tool"),
  /** The provider's call id; unique only within its message (TU-10). */
  id: Schema.String,
  name: Schema.String,
  state: Schema.Literal("pending", "running", "completed", "error"),
  /** The raw input text, once complete. */
  raw: optional(Schema.String),
  input: optional(JsonRecord),
  /** Metadata of call and result are stored separately (TO-11). */
  provider: optional(
    Schema.Struct({
      executed: Schema.Boolean,
      metadata: optional(ProviderMetadata),
      resultMetadata: optional(ProviderMetadata)
    })
  ),
  structured: optional(JsonRecord),
  content: optional(Schema.Array(ToolContent)),
  outputPaths: optional(Schema.Array(Schema.String)),
  error: optional(StoredError),
  result: optional(JsonValue),
  createdAt: Schema.Int,
  ranAt: optional(Schema.Int),
  completedAt: optional(Schema.Int)
})
export type ToolPart = typeof ToolPart.Type
export const Part = Schema.Union(TextPart, ReasoningPart, ToolPart)
export type Part = typeof Part.Type

export const UserMessage = Schema.Struct({
  type: Schema.Literal("user"),
  ...base,
  ...Prompt.fields
})
export type UserMessage = typeof UserMessage.Type
/** An answer of a model: one step with its parts, usage and error. */
export const AssistantMessage = Schema.Struct({
  type: Schema.Literal("assistant"),
  ...base,
  agent: Schema.String,
  model: ModelRef,
  content: Schema.Array(Part),
  snapshot: optional(Schema.String),
  finish: optional(Schema.String),
  cost: optional(Schema.Finite),
  tokens: optional(Tokens),
  /** Cost and tokens are Daybook's estimate, not the provider's count. */
  estimated: optional(Schema.Literal(true)),
  inputEstimate: optional(Schema.NonNegativeInt),
  price: optional(Price),
  error: optional(StoredError),
  completedAt: optional(Schema.Int)
})
export type AssistantMessage = typeof AssistantMessage.Type
export const Message = Schema.Union(
  UserMessage,
  AssistantMessage,
  Schema.Struct({ type: Schema.Literal("system"), ...base, text: Schema.String }),
  Schema.Struct({ type: Schema.Literal("synthetic"), ...base, text: Schema.String }),
  Schema.Struct({
    type: Schema.Literal("shell"),
    ...base,
    callID: Schema.String,
    command: Schema.String,
    output: optional(Schema.String),
    completedAt: optional(Schema.Int)
  }),
  Schema.Struct({ type: Schema.Literal("agent-switched"), ...base, agent: Schema.String }),
  Schema.Struct({ type: Schema.Literal("model-switched"), ...base, model: ModelRef }),
  /** A summary of a branch that was left. `from` was its leaf. */
  Schema.Struct({
    type: Schema.Literal("branch-summary"),
    ...base,
    summary: Schema.String,
    from: optional(MessageID),
    readFiles: optional(Schema.Array(Schema.String)),
    modifiedFiles: optional(Schema.Array(Schema.String))
  }),
  Schema.Struct({
    type: Schema.Literal("compaction"),
    ...base,
    reason: Schema.Literal("auto", "manual"),
    summary: Schema.String,
    recent: Schema.String,
    /** The prompt that opened the current activity, verbatim up to a limit. */
    task: optional(Schema.String),
    /** Prompts from this sequence number on follow the checkpoint verbatim. */
    firstKeptSeq: optional(Schema.Int),
    /** All messages from this sequence number on follow the checkpoint. */
    keptSeq: optional(Schema.Int),
    readFiles: optional(Schema.Array(Schema.String)),
    modifiedFiles: optional(Schema.Array(Schema.String))
  })
)
export type Message = typeof Message.Type

/** What a message says, but for answers. */
export const wordsOf = (message: Exclude<Message, AssistantMessage>): string => {
  switch (message.type) {
    case "user":
    case "system":
    case "synthetic":
      return message.text
    case "shell":
      return `$ ${message.command}`
    case "agent-switched":
      return message.agent
    case "model-switched":
      return modelText(message.model)
    case "compaction":
    case "branch-summary":
      return message.summary
  }
}

/** An admitted prompt: the receipt that every exact retry returns (IN-4). */
export const Input = Schema.Struct({
  id: MessageID,
  sessionID: SessionID,
  prompt: Prompt,
  delivery: Delivery,
  admittedSeq: Schema.Int,
  /** Set when the prompt is promoted; equals the message's `seq`. */
  promotedSeq: optional(Schema.Int),
  /** Set when the prompt is withdrawn. */
  withdrawnSeq: optional(Schema.Int),
  createdAt: Schema.Int
})
export type Input = typeof Input.Type

// Applies the edits of the context to the messages that the model is shown; people, the log and exports keep the
// originals.

/** Stands in place of a result that was removed: providers refuse a call without a result. */
const removedResult: ReadonlyArray<ToolContent> = [{ type: "text", text: "[The result was removed from the context.]" }]

const textOf = (content: ReadonlyArray<ToolContent>): string =>
  content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n")

const editedResult = (part: ToolPart, edit: ContextEdit | undefined): ToolPart => {
  if (edit === undefined) return part
  const { content = removedResult } = edit
  // Each of these holds the result in another form.
  const rest = Struct.omit(part, "outputPaths", "result", "structured")
  return part.state === "error" && part.error !== undefined
    ? { ...rest, content: [], error: { ...part.error, message: textOf(content) } }
    : { ...rest, content }
}

const isResultOf =
  (part: ToolPart) =>
  ({ callID }: ContextEdit): boolean =>
    callID === part.id

/** The parts of an answer with another content: its texts first, then the calls that stay. */
const editedParts = (message: AssistantMessage, { calls = [], content = [] }: ContextEdit): ReadonlyArray<Part> => [
  { type: "text", id: "edited", text: textOf(content) },
  ...message.content.flatMap((part): ReadonlyArray<Part> => {
    if (part.type !== "tool") return []
    const kept = calls.find(({ callID }) => callID === part.id)
    return kept === undefined ? [] : [{ ...part, input: kept.input }]
  })
]

const editedAnswer = (message: AssistantMessage, edits: ReadonlyArray<ContextEdit>): Message => {
  const own = edits.findLast(({ callID }) => callID === undefined)
  const parts = own === undefined ? message.content : editedParts(message, own)
  return {
    ...Struct.omit(message, "edits"),
    content: parts.map((part) => (part.type === "tool" ? editedResult(part, edits.findLast(isResultOf(part))) : part))
  }
}

const editedOf = (message: Message): Message | undefined => {
  const { edits = [] } = message
  const own = edits.findLast(({ callID }) => callID === undefined)
  if (own !== undefined && own.content === undefined) return undefined
  if (message.type === "assistant") return editedAnswer(message, edits)
  if (own?.content === undefined || (message.type !== "user" && message.type !== "synthetic")) return message
  const { createdAt, id, seq, type, withheld } = message
  const shown = withheld === undefined ? {} : { withheld }
  const text = textOf(own.content)
  const files = own.content.filter((part) => part.type === "file")
  return type === "synthetic" && files.length === 0
    ? { type, id, seq, createdAt, text, ...shown }
    : { type: "user", id, seq, createdAt, text, ...(files.length === 0 ? {} : { files }), ...shown }
}

/** Messages keep their identity, on which later steps rely. */
const known = new WeakMap<Message, ReadonlyArray<Message>>()

const shownOf = (message: Message): ReadonlyArray<Message> => {
  if (message.edits === undefined) return [message]
  const before = known.get(message)
  if (before !== undefined) return before
  const edited = editedOf(message)
  const shown = edited === undefined ? [] : [edited]
  known.set(message, shown)
  return shown
}

/** The messages as the model is shown them; a removed one is left out. */
export const edited = (messages: ReadonlyArray<Message>): ReadonlyArray<Message> =>
  messages.some(({ edits }) => edits !== undefined) ? messages.flatMap(shownOf) : messages
