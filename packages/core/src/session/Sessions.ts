/**
 * Defines the facade: what a host does with sessions. Admission and execution are separate: `prompt` returns when the
 * prompt is on disk, the work continues in the background, and `wait` and `events` follow it. Spec: specs/sessions.md,
 * execution.md.
 */
import { Context, Effect, JSONSchema, Schema, type Stream } from "effect"
import type { SessionBusy } from "@daybook/log/coordination/SessionOwner"
import type { Address } from "@daybook/log/domain/Address"
import type { MessageID, SessionID } from "@daybook/log/domain/Identifiers"
import type { ImportUnfinished } from "@daybook/log/domain/Imported"
import type { InboxFullError, NotWaiting, PromptConflictError } from "@daybook/log/domain/InboxError"
import type { InvalidInput } from "@daybook/log/domain/InvalidInput"
import type { Input, Message, Session } from "@daybook/log/domain/Message"
import type { AddressTaken, TitleAmbiguous } from "@daybook/log/domain/Title"
import type { MessageNotFound, TreeOptions, TreePage } from "@daybook/log/domain/HistoryPath"
import {
  type Budget,
  JsonRecord,
  type Location,
  type ModelRef,
  type OutputFormat,
  type SessionMetrics,
  type TodoItem
} from "@daybook/log/domain/Values"
import type { LiveEvent, SessionEvent } from "@daybook/log/events/SessionEvents"
import type {
  AppendError,
  EventPage,
  EventUnreadable,
  Followed,
  From,
  LogUnavailable,
  ReadError,
  ReadOptions,
  ReplayComplete,
  SessionNotFound,
  SubscriberOverflow
} from "@daybook/log/log/EventLog"
import type { ListOptions, MessagePage, MessagesOptions, Page } from "@daybook/log/store/Pages"
import type { StoreError } from "@daybook/log/store/StoreError"
import type { PendingQuestion, QuestionClosed, QuestionRef } from "../domain/Question.ts"
import type { SnapshotUnavailable } from "../snapshot/SnapshotError.ts"
import type { NothingShown, ShownRequest } from "../request/Recorded.ts"
import type { PriceUnknown, RunError } from "../runner/RunError.ts"
import { Answer, type PromptUnanswered } from "./Answer.ts"
import type { BranchNotSummarized, SummaryRefused } from "./Branching.ts"
import type {
  AnswerOptions,
  AskOptions,
  Branched,
  BranchOptions,
  CreateOptions,
  Forked,
  ForkOptions,
  InterruptOptions,
  LabelOptions,
  NamedOptions,
  NamedSession,
  NothingToRedo,
  NothingToUndo,
  Placement,
  PromptOptions,
  RedoRefused,
  RequestOptions,
  SessionUsage,
  Undone,
  UndoOptions
} from "./SessionOptions.ts"

/** Why a session is not changed. `ImportUnfinished`: import its log again first (IM-23). */
export type ChangeError = SessionNotFound | ImportUnfinished | StoreError | AppendError

export { rerun, type RerunAnswer, type RerunOptions } from "./Rerun.ts"

/** What `Sessions` offers. */
export interface Service {
  /** Creates a session; an existing id returns that session unchanged (CR-1). */
  readonly create: (
    options: CreateOptions
  ) => Effect.Effect<Session, InvalidInput | AddressTaken | StoreError | AppendError>
  /**
   * Returns the session with this title: the only one in the folder, else the only one anywhere, else a new one. Of
   * concurrent callers, in any number of processes, exactly one creates it (IB-13).
   */
  readonly named: (
    options: NamedOptions
  ) => Effect.Effect<NamedSession, InvalidInput | TitleAmbiguous | StoreError | AppendError>
  /** The session at an address, if any (AD-2). */
  readonly addressed: (address: Address) => Effect.Effect<Session | undefined, InvalidInput | StoreError>
  /** Gives the session its first address, or changes its root; publishes nothing if both are unchanged (AD-4). */
  readonly place: (
    sessionID: SessionID,
    placement: Placement
  ) => Effect.Effect<void, InvalidInput | AddressTaken | ChangeError>
  /** The current state of a session. */
  readonly get: (sessionID: SessionID) => Effect.Effect<Session, SessionNotFound | StoreError>
  /** Sessions, last used first, in pages. */
  readonly list: (options?: ListOptions) => Effect.Effect<Page<Session>, InvalidInput | StoreError>
  /**
   * The visible transcript in event order, in pages (PR-7): the messages of the history path, or of all branches with
   * `branch: "all"` (HP-12).
   */
  readonly messages: (options: MessagesOptions) => Effect.Effect<MessagePage, SessionNotFound | StoreError>
  /** One message of the session's visible transcript; undefined if there is none with this id. */
  readonly message: (
    sessionID: SessionID,
    messageID: MessageID
  ) => Effect.Effect<Message | undefined, SessionNotFound | StoreError>
  /** The tree of the session's messages, in pages in the order of the log (HP-4). */
  readonly tree: (options: TreeOptions) => Effect.Effect<TreePage, SessionNotFound | StoreError>
  /**
   * Continues the history after an earlier message, or after one of another branch; the messages that it leaves stay
   * in the tree. A prompt is branched off before it and returned, so that it can be edited and sent again. Stores
   * nothing if history continues there already. Fails with `SessionBusy` while the session runs (HP-20 to HP-22). With
   * `summary`, the model summarizes what is left; if that fails, nothing is moved (HP-26).
   */
  readonly branch: (
    options: BranchOptions
  ) => Effect.Effect<
    Branched,
    MessageNotFound | SessionBusy | ChangeError | EventUnreadable | BranchNotSummarized | SummaryRefused
  >
  /** Creates a session with the history of this one, up to a message. The source does not change (HP-30). */
  readonly fork: (
    options: ForkOptions
  ) => Effect.Effect<Forked, InvalidInput | MessageNotFound | ImportUnfinished | ReadError | StoreError | AppendError>
  /**
   * Takes back the last prompt of the history: the files that its turns changed, where they were snapshotted, then the
   * history. Returns an exact account, and the prompt, so that it can be edited and sent again. Files that changed
   * since are left, unless `force`. Fails with `SessionBusy` while the session runs, with `SnapshotUnavailable` if the
   * files could not be restored, which leaves the history; running it again finishes it (UN-26 to UN-30).
   */
  readonly undo: (
    options: UndoOptions
  ) => Effect.Effect<
    Undone,
    NothingToUndo | SnapshotUnavailable | SessionBusy | ChangeError | EventUnreadable | LogUnavailable
  >
  /**
   * Takes back the last undo: files and history are again as just before it, with the same account. A second
   * call takes back the undo before that. Fails with `RedoRefused`, and changes nothing, if the session went on since, or if files did, unless `force`
   * (UN-50 to UN-53).
   */
  readonly redo: (
    options: UndoOptions
  ) => Effect.Effect<
    Undone,
    NothingToRedo | RedoRefused | SnapshotUnavailable | SessionBusy | ChangeError | EventUnreadable | LogUnavailable
  >
  /** Continues the history before the first message (HP-23). */
  readonly reset: (
    sessionID: SessionID
  ) => Effect.Effect<Branched, MessageNotFound | SessionBusy | EventUnreadable | ChangeError>
  /** Labels a message in place of an earlier label, or removes its label (HP-24). */
  readonly label: (
    options: LabelOptions
  ) => Effect.Effect<void, InvalidInput | MessageNotFound | EventUnreadable | ChangeError>
  /** The messages that the model is shown: from the last completed compaction on. */
  readonly context: (sessionID: SessionID) => Effect.Effect<ReadonlyArray<Message>, SessionNotFound | StoreError>
  /** Waiting inputs, in admission order. */
  readonly inbox: (sessionID: SessionID) => Effect.Effect<ReadonlyArray<Input>, SessionNotFound | StoreError>
  /** `session.next.*` events after the cursor, then new ones (TL-1). The creation event is skipped. */
  readonly events: (options: From) => Stream.Stream<SessionEvent, ReadError>
  /** `events` with one marker where replay ends (TL-9). */
  readonly eventsMarked: (options: From) => Stream.Stream<SessionEvent | ReplayComplete, ReadError>
  /** `eventsMarked` with the deltas of the running turn behind the marker, each text's between its start and its end. */
  readonly follow: (options: From) => Stream.Stream<Followed, ReadError>
  /**
   * One page of events after the cursor; `limit` is at most 100. If you pass the page's `incarnation` with its
   * cursor, the next page, or `events`, is of the same session or fails.
   */
  readonly history: (options: ReadOptions) => Effect.Effect<EventPage, ReadError>
  /** Deltas of the running turn, for connected readers; never part of `events` (TL-5). */
  readonly live: (sessionID: SessionID) => Stream.Stream<LiveEvent, SubscriberOverflow>
  /** Admits a prompt; it is on disk when this returns. The same id and content give the same receipt (IN-4). */
  readonly prompt: (
    options: PromptOptions
  ) => Effect.Effect<
    Input,
    InvalidInput | SessionNotFound | ImportUnfinished | PromptConflictError | InboxFullError | StoreError | AppendError
  >
  /**
   * Prompts and returns the settled answer; with the same id, the same answer (IB-50, IB-52). Interrupting the caller
   * only ends its waiting. `prompt` and `events` follow an answer while it is written.
   */
  readonly ask: (
    options: AskOptions
  ) => Effect.Effect<
    Answer,
    | InvalidInput
    | ImportUnfinished
    | PromptConflictError
    | InboxFullError
    | PromptUnanswered
    | RunError
    | ReadError
    | StoreError
  >
  /** Withdraws a waiting prompt: no model gets it, and its id stays taken (IB-40). */
  readonly withdraw: (sessionID: SessionID, messageID: MessageID) => Effect.Effect<void, NotWaiting | ChangeError>
  /**
   * Settles what a dead process left running, as interrupted, and runs nothing; returns whether there was something
   * to settle. Does not touch a session that a living process owns, or whose import is not complete (TU-13).
   */
  readonly settle: (sessionID: SessionID) => Effect.Effect<boolean, SessionNotFound | StoreError | AppendError>
  /** Runs the session now, with at least one provider turn; joins a run in progress (CO-2). */
  readonly resume: (
    sessionID: SessionID
  ) => Effect.Effect<void, SessionNotFound | ImportUnfinished | StoreError | RunError>
  /**
   * Stops the session's work in this and every other process, and waits until it has settled (CO-6). With an
   * activity, stops only that one: waiting inputs continue after it, and if it does not run this does nothing
   * (EX-E9).
   */
  readonly interrupt: (sessionID: SessionID, options?: InterruptOptions) => Effect.Effect<void, LogUnavailable>
  /** Waits until nothing runs for the session in this process, then returns the session. Does not start anything. */
  readonly wait: (sessionID: SessionID) => Effect.Effect<Session, SessionNotFound | StoreError>
  /** Sessions that run in this process. */
  readonly active: Effect.Effect<ReadonlyArray<SessionID>>
  /**
   * Sessions whose last activity was cut off by the death of its process (TU-13). Waits until every owner is known to
   * be alive or not: immediate for dead processes of this machine, otherwise at most a lease of silence (EX-O7).
   */
  readonly interrupted: Effect.Effect<ReadonlyArray<Session>, StoreError>
  /**
   * Sessions with waiting prompts and no living owner: their process died before it ran them, or they were admitted
   * with `resume: false`. `resume` runs them. Takes as long as `interrupted` (EX-E7).
   */
  readonly waiting: Effect.Effect<ReadonlyArray<Session>, StoreError>
  /** Switches the agent from the next safe boundary on, with both agents' reminders (CR-4). */
  readonly switchAgent: (sessionID: SessionID, agent: string) => Effect.Effect<void, InvalidInput | ChangeError>
  /** The model must exist, as for its next turn. Publishes nothing if it is unchanged (CR-3). */
  readonly switchModel: (sessionID: SessionID, model: ModelRef) => Effect.Effect<void, InvalidInput | ChangeError>
  /** Moves the session to another Location, where its context starts again (EP-9). */
  readonly move: (sessionID: SessionID, location: Location) => Effect.Effect<void, InvalidInput | ChangeError>
  /**
   * Requests a compaction: it runs at the next safe boundary, or immediately if the session is idle. `wait` and
   * `events` follow it; it ends as `compaction.ended`, or as `compaction.failed` with the reason (CP-55).
   */
  readonly compact: (sessionID: SessionID) => Effect.Effect<MessageID, ChangeError>
  /** Shows all pruned tool results to the model again (CP-35). */
  readonly unprune: (sessionID: SessionID) => Effect.Effect<void, ChangeError>
  /** Sets the budget of the session and its children from now on; an empty budget means no limit (EX-B1). */
  readonly setBudget: (
    sessionID: SessionID,
    budget: Budget
  ) => Effect.Effect<void, InvalidInput | PriceUnknown | ChangeError>
  /**
   * Returns a request to the model. With `at`: the request of the turn that the event at this sequence number belongs
   * to, from the log. Without: the request that would be sent now; writes nothing and asks no one (RQ-34, RQ-37).
   */
  readonly request: (
    options: RequestOptions
  ) => Effect.Effect<ShownRequest, NothingShown | SessionNotFound | StoreError | RunError | ReadError>
  /** Changes the title. Titles need not be unique. */
  readonly rename: (sessionID: SessionID, title: string) => Effect.Effect<void, InvalidInput | ChangeError>
  /** The model's open questions to a person, oldest first (TO-84). */
  readonly questions: (
    sessionID: SessionID
  ) => Effect.Effect<ReadonlyArray<PendingQuestion>, SessionNotFound | StoreError>
  /** Answers a call's questions, one text each. If it was closed meanwhile, fails with `QuestionClosed`. */
  readonly answer: (
    options: AnswerOptions
  ) => Effect.Effect<void, InvalidInput | QuestionClosed | SessionNotFound | StoreError | AppendError>
  /** Declines to answer: the run that asked stops (TO-5). */
  readonly dismissQuestion: (
    options: QuestionRef
  ) => Effect.Effect<void, InvalidInput | QuestionClosed | SessionNotFound | StoreError | AppendError>
  /** The session's todo list, as its model last wrote it (TO-91). */
  readonly todos: (sessionID: SessionID) => Effect.Effect<ReadonlyArray<TodoItem>, SessionNotFound | StoreError>
  /** What the session spent itself, and together with its descendants (TO-106). */
  readonly usage: (sessionID: SessionID) => Effect.Effect<SessionUsage, SessionNotFound | StoreError>
  /** Turns, calls, duration, cost and tokens of the session itself; the cost of this read is constant (PJ-16). */
  readonly metrics: (sessionID: SessionID) => Effect.Effect<SessionMetrics, SessionNotFound | StoreError>
  /** Interrupts the session, then deletes it with everything that belongs to it (EV-10). */
  readonly remove: (sessionID: SessionID) => Effect.Effect<void, SessionNotFound | LogUnavailable>
}

/**
 * The sessions of one database.
 *
 * @example
 * ```ts
 * import { Sessions } from "@daybook/core"
 * import { Effect } from "effect"
 *
 * // Asks the session of this folder with this title, which is created if there is none.
 * export const ask = Effect.fn(function* (title: string, text: string) {
 *   const sessions = yield* Sessions.Sessions
 *   const { session } = yield* sessions.named({ title, location: { directory: process.cwd() } })
 *   return yield* sessions.ask({ sessionID: session.id, prompt: { text } })
 * })
 * ```
 */
export class Sessions extends Context.Tag("@daybook/core/Sessions")<Sessions, Service>() {}

/** The answer has a value of the JSON Schema that `output` does not decode. The prompt stays answered. */
export class AnswerUndecodable extends Schema.TaggedError<AnswerUndecodable>("@daybook/core/AnswerUndecodable")(
  "AnswerUndecodable",
  { answer: Answer, details: Schema.String }
) {
  override get message() {
    return `the answer to ${this.answer.messageID} does not decode: ${this.details}`
  }
}

const isJsonRecord = Schema.is(JsonRecord)

/** The field of a value other than an object: models answer with an object. */
const wrapped = "value"

/** The form of values of the schema: its encoded side as JSON Schema. */
const formOf = (schema: Schema.Schema.Any): { readonly form: OutputFormat; readonly isWrapped: boolean } => {
  const whole: unknown = JSONSchema.make(schema)
  const { $defs = {}, $schema, ...root } = isJsonRecord(whole) ? whole : {}
  const name = typeof root["$ref"] === "string" ? root["$ref"].replace("#/$defs/", "") : ""
  const target: unknown = isJsonRecord($defs) ? ($defs[decodeURIComponent(name)] ?? root) : root
  const isWrapped = !isJsonRecord(target) || target["type"] !== "object"
  const words = isWrapped
    ? { type: "object", properties: { [wrapped]: root }, required: [wrapped], additionalProperties: false }
    : root
  const form = { ...(typeof $schema === "string" ? { $schema } : {}), ...words, $defs }
  return { form: { schema: isJsonRecord(form) ? form : {} }, isWrapped }
}

/**
 * Asks for a value of an Effect Schema and returns the answer with the decoded value. The model is shown the schema's
 * encoded side as JSON Schema, and corrects what does not fit it (RQ-42). Works over a server too.
 *
 * @example
 * ```ts
 * import { Sessions } from "@daybook/core"
 * import { Effect, Schema } from "effect"
 *
 * class Ticket extends Schema.Class<Ticket>("Ticket")({
 *   title: Schema.String,
 *   urgent: Schema.Boolean
 * }) {}
 *
 * export const triage = Effect.fn(function* (mail: string) {
 *   const session = yield* (yield* Sessions.Sessions).create({ location: { directory: "/srv/mail" } })
 *   const { value } = yield* Sessions.askFor({ sessionID: session.id, prompt: { text: mail }, output: Ticket })
 *   return value.urgent ? `now: ${value.title}` : value.title
 * })
 * ```
 */
export const askFor = Effect.fn("Sessions.askFor")(function* <A, I>({
  output,
  prompt,
  ...options
}: Omit<AskOptions, "prompt"> & {
  readonly prompt: Omit<AskOptions["prompt"], "output">
  readonly output: Schema.Schema<A, I>
}) {
  const sessions = yield* Sessions
  const { form, isWrapped } = formOf(output)
  const answer = yield* sessions.ask({ ...options, prompt: { ...prompt, output: form } })
  const given = isWrapped ? answer.output?.[wrapped] : answer.output
  const value = yield* Effect.mapError(
    Schema.decodeUnknown(output)(given),
    ({ message }) => new AnswerUndecodable({ answer, details: message })
  )
  return { ...answer, value }
})
