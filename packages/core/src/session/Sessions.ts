/**
 * The facade: what a host does with sessions. Admission and execution are separate: `prompt` returns when the prompt
 * is on disk, the work goes on in the background, `wait` and `events` follow it. Spec: specs/inbox.md, execution.md.
 */
import { Context, Schema, type Effect, type Stream } from "effect"
import type { LiveEvent, SessionEvent } from "../events/SessionEvents.ts"
import { MessageID, SessionID, type ActivityID } from "../Identifiers.ts"
import type {
  AppendError,
  LogUnavailable,
  From,
  ReadError,
  ReplayComplete,
  SessionNotFound,
  SubscriberOverflow
} from "../log/EventLog.ts"
import type { Address, House } from "./Address.ts"
import type { Estimated, Usage } from "./Family.ts"
import type { Input, Message, Session } from "./Message.ts"
import type { PendingQuestion, QuestionClosed, QuestionRef } from "./Question.ts"
import type { NothingShown, ShownRequest } from "../request/Recorded.ts"
import type { StoreError } from "./StoreError.ts"
import type { PriceUnknown, RunError } from "./RunError.ts"
import type { Budget, Delivery, Location, ModelRef, PromptInput } from "./Schemas.ts"
import type { TodoItem } from "./Todos.ts"

/** The message id was used before for another session, prompt or delivery, or belongs to a message (IN-5, IN-6). */
export class PromptConflictError extends Schema.TaggedError<PromptConflictError>("@daybook/core/PromptConflictError")(
  "PromptConflictError",
  { sessionID: SessionID, messageID: MessageID }
) {
  override get message() {
    return `${this.messageID} is taken by another prompt or message; use a new id, or repeat the prompt exactly`
  }
}

/** The session has as many waiting inputs as it may (IN-12). Nothing was admitted. */
export class InboxFullError extends Schema.TaggedError<InboxFullError>("@daybook/core/InboxFullError")(
  "InboxFullError",
  { sessionID: SessionID, limit: Schema.Int }
) {
  override get message() {
    return `${this.sessionID} has ${this.limit} inputs waiting already; let it work, then try again`
  }
}

/** What was given cannot be used: which field, and what it should be. */
export class InvalidInput extends Schema.TaggedError<InvalidInput>("@daybook/core/InvalidInput")("InvalidInput", {
  field: Schema.String,
  details: Schema.String
}) {
  override get message() {
    return `${this.field}: ${this.details}`
  }
}

/** The prompt is no longer in the inbox: it was promoted or taken back before. */
export class NotWaiting extends Schema.TaggedError<NotWaiting>("@daybook/core/NotWaiting")("NotWaiting", {
  sessionID: SessionID,
  messageID: Schema.String
}) {
  override get message() {
    return `${this.messageID} does not wait in the inbox of ${this.sessionID}`
  }
}

/** Another session has the address. */
export class AddressTaken extends Schema.TaggedError<AddressTaken>("@daybook/core/AddressTaken")("AddressTaken", {
  address: Schema.String
}) {
  override get message() {
    return `another session is kept at ${this.address}; choose another name`
  }
}

/** More than one session has the title: a name must mean one. The last used come first; ten are listed at most. */
export class TitleAmbiguous extends Schema.TaggedError<TitleAmbiguous>("@daybook/core/TitleAmbiguous")(
  "TitleAmbiguous",
  { title: Schema.String, sessionIDs: Schema.Array(SessionID) }
) {
  override get message() {
    return (
      `more than one session is called ${JSON.stringify(this.title)}: ${this.sessionIDs.join(", ")}; ` +
      "use an id, and rename or remove the others to use the name again"
    )
  }
}

/** Where a session is kept for its clients. */
export interface Placement {
  readonly address: Address
  /** The folder that its agent takes for the whole file system; absolute, by its real path. */
  readonly root?: string | undefined
}

/** A session to be: only its Location is needed. */
export interface CreateOptions {
  readonly id?: string | undefined
  readonly location: Location
  readonly agent?: string | undefined
  readonly model?: ModelRef | undefined
  readonly title?: string | undefined
  readonly parentID?: SessionID | undefined
  /** With an address that a session has, that one is returned unchanged, unless another id is asked for (AD-3). */
  readonly placement?: Placement | undefined
}

/** A prompt for a session; with an id of the caller's, it can be sent again safely. */
export interface PromptOptions {
  readonly id?: string | undefined
  readonly sessionID: SessionID
  readonly prompt: PromptInput
  /** `steer` by default. */
  readonly delivery?: Delivery | undefined
  /** False admits only; otherwise the session is woken. */
  readonly resume?: boolean | undefined
  /** False takes the words as they are: no mention or template in them means anything. For words that no person wrote. */
  readonly expand?: boolean | undefined
}

/** Which sessions, and which page of them. */
export interface ListOptions {
  /** Sessions of this folder only, whatever spelling of its path is given. */
  readonly directory?: string | undefined
  /** Part of the title or of a prompt's text, any case; 1,000 characters at most. */
  readonly search?: string | undefined
  /** Sessions of this agent or model in this scope only; of an agent's private ones also those without an address. */
  readonly house?: House | undefined
  /** 50 by default, 500 at most. */
  readonly limit?: number | undefined
  /** From the page before. */
  readonly cursor?: string | undefined
}

/** One page of a list. */
export interface Page<A> {
  readonly items: ReadonlyArray<A>
  /** Present when more follow. */
  readonly cursor?: string
}

/** Which page of a transcript. */
export interface MessagesOptions {
  readonly sessionID: SessionID
  /** 50 by default, 500 at most. */
  readonly limit?: number | undefined
  /** `asc`, oldest first, by default. */
  readonly order?: "asc" | "desc" | undefined
  /**
   * The page goes on after the message with this sequence number (before it, for `desc`). Any sequence number will do:
   * to read around a message, ask for the page before and the page after its `seq`.
   */
  readonly cursor?: number | undefined
}

/** One page of a transcript. */
export interface MessagePage {
  readonly items: ReadonlyArray<Message>
  /** Messages of the session in all. */
  readonly total: number
  /** Present when more follow. */
  readonly cursor?: number
}

/** The sessions of one database. */
export class Sessions extends Context.Tag("@daybook/core/Sessions")<
  Sessions,
  {
    /** Creates a session; with an id that exists, returns that one unchanged (CR-1). */
    readonly create: (
      options: CreateOptions
    ) => Effect.Effect<Session, InvalidInput | AddressTaken | StoreError | AppendError>
    /**
     * The session of this title: the only one in the folder, else the only one anywhere, else a new one. Of any number of
     * callers at once, in any number of processes, one makes it (IB-13).
     */
    readonly named: (
      options: Omit<CreateOptions, "id" | "placement"> & { readonly title: string }
    ) => Effect.Effect<
      { readonly session: Session; readonly isNew: boolean },
      InvalidInput | TitleAmbiguous | StoreError | AppendError
    >
    /** The session at an address, if there is one (AD-2). */
    readonly addressed: (address: Address) => Effect.Effect<Session | undefined, InvalidInput | StoreError>
    /** Gives a session that has none its address, or another root; publishes nothing when it has them (AD-4). */
    readonly place: (
      sessionID: SessionID,
      placement: Placement
    ) => Effect.Effect<void, InvalidInput | AddressTaken | SessionNotFound | StoreError | AppendError>
    readonly get: (sessionID: SessionID) => Effect.Effect<Session, SessionNotFound | StoreError>
    /** Sessions, the last used first, in pages. */
    readonly list: (options?: ListOptions) => Effect.Effect<Page<Session>, InvalidInput | StoreError>
    /** The visible transcript in event order, in pages (PR-7). */
    readonly messages: (options: MessagesOptions) => Effect.Effect<MessagePage, SessionNotFound | StoreError>
    readonly message: (
      sessionID: SessionID,
      messageID: MessageID
    ) => Effect.Effect<Message | undefined, SessionNotFound | StoreError>
    /** The messages that the model is shown: from the last completed compaction on. */
    readonly context: (sessionID: SessionID) => Effect.Effect<ReadonlyArray<Message>, SessionNotFound | StoreError>
    /** Waiting inputs, in admission order. */
    readonly inbox: (sessionID: SessionID) => Effect.Effect<ReadonlyArray<Input>, SessionNotFound | StoreError>
    /** `session.next.*` events after the cursor, then those to come (TL-1). The creation event is not among them. */
    readonly events: (options: From) => Stream.Stream<SessionEvent, ReadError>
    /** `events` with one marker where replay ends (TL-9). */
    readonly eventsMarked: (options: From) => Stream.Stream<SessionEvent | ReplayComplete, ReadError>
    /**
     * One page of events after the cursor; `limit` is 100 at most. Give the page's `incarnation` with its cursor, and the
     * next page, or `events`, is of the same session or fails.
     */
    readonly history: (options: From & { readonly limit?: number | undefined }) => Effect.Effect<
      {
        readonly events: ReadonlyArray<SessionEvent>
        readonly cursor: number
        readonly incarnation: number
        readonly hasMore: boolean
      },
      ReadError
    >
    /** Deltas of the running turn, for connected readers; never part of `events` (TL-5). */
    readonly live: (sessionID: SessionID) => Stream.Stream<LiveEvent, SubscriberOverflow>
    /** Admits a prompt; on disk when it returns. The same id with the same content returns the same receipt (IN-4). */
    readonly prompt: (
      options: PromptOptions
    ) => Effect.Effect<
      Input,
      InvalidInput | SessionNotFound | PromptConflictError | InboxFullError | StoreError | AppendError
    >
    /** Takes a waiting prompt back: no model gets it, and its id stays taken (IB-40). */
    readonly withdraw: (
      sessionID: SessionID,
      messageID: MessageID
    ) => Effect.Effect<void, NotWaiting | SessionNotFound | StoreError | AppendError>
    /**
     * Settles what a dead process left running, as interrupted, and runs nothing; true if there was something. A session
     * that a living process works on is left alone (TU-13).
     */
    readonly settle: (sessionID: SessionID) => Effect.Effect<boolean, SessionNotFound | StoreError | AppendError>
    /** Runs the session now, at least one provider turn; joins a run that is under way (CO-2). */
    readonly resume: (sessionID: SessionID) => Effect.Effect<void, SessionNotFound | StoreError | RunError>
    /**
     * Stops the session's work in this process and any other, and waits until it has settled (CO-6). With an activity,
     * stops that one and no other: what waits goes on after it, and nothing is done when it does not run (EX-E9).
     */
    readonly interrupt: (
      sessionID: SessionID,
      options?: { readonly activityID?: ActivityID | undefined }
    ) => Effect.Effect<void, LogUnavailable>
    /** Waits until nothing runs for the session in this process and returns it. Does not start anything. */
    readonly wait: (sessionID: SessionID) => Effect.Effect<Session, SessionNotFound | StoreError>
    /** Sessions that this process is working on. */
    readonly active: Effect.Effect<ReadonlyArray<SessionID>>
    /**
     * Sessions whose last activity was cut off by the death of its process (TU-13). Takes until every owner is known to
     * live or not: at once for processes of this machine that are gone, a lease of silence at the most (EX-O7).
     */
    readonly interrupted: Effect.Effect<ReadonlyArray<Session>, StoreError>
    /**
     * Sessions in which prompts wait and on which no living process works: their process died before it ran them, or they
     * were admitted with `resume: false`. `resume` runs them. Takes as long as `interrupted` (EX-E7).
     */
    readonly waiting: Effect.Effect<ReadonlyArray<Session>, StoreError>
    readonly switchAgent: (
      sessionID: SessionID,
      agent: string
    ) => Effect.Effect<void, InvalidInput | SessionNotFound | StoreError | AppendError>
    /** Publishes nothing when the model is the current one (CR-3). */
    readonly switchModel: (
      sessionID: SessionID,
      model: ModelRef
    ) => Effect.Effect<void, InvalidInput | SessionNotFound | StoreError | AppendError>
    /** Moves the session to another Location; its context starts anew there (EP-9). */
    readonly move: (
      sessionID: SessionID,
      location: Location
    ) => Effect.Effect<void, InvalidInput | SessionNotFound | StoreError | AppendError>
    /**
     * Asks for a compaction: done at the next safe boundary, at once when the session is idle. `wait` and `events` follow
     * it; it ends as `compaction.ended`, or as `compaction.failed` with the reason (CP-41).
     */
    readonly compact: (sessionID: SessionID) => Effect.Effect<MessageID, SessionNotFound | StoreError | AppendError>
    /** Shows all results of tools again that were left out of what the model is shown (CP-35). */
    readonly unprune: (sessionID: SessionID) => Effect.Effect<void, SessionNotFound | StoreError | AppendError>
    /** What the session and its children may spend from now on; an empty budget is no limit (EX-B1). */
    readonly setBudget: (
      sessionID: SessionID,
      budget: Budget
    ) => Effect.Effect<void, InvalidInput | PriceUnknown | SessionNotFound | StoreError | AppendError>
    /**
     * What the model is shown: with `at`, the request of the turn that the event at this place belongs to, from the log;
     * without, the one that would go out now, for which nothing is written and nobody asked (RQ-34, RQ-37).
     */
    readonly request: (options: {
      readonly sessionID: SessionID
      readonly at?: number | undefined
    }) => Effect.Effect<ShownRequest, NothingShown | SessionNotFound | StoreError | RunError | ReadError>
    readonly rename: (
      sessionID: SessionID,
      title: string
    ) => Effect.Effect<void, InvalidInput | SessionNotFound | StoreError | AppendError>
    /** What the model asks a person and waits for, the oldest first (TO-84). */
    readonly questions: (
      sessionID: SessionID
    ) => Effect.Effect<ReadonlyArray<PendingQuestion>, SessionNotFound | StoreError>
    /** Answers a call's questions, one text each; of two answers one wins, the other is `QuestionClosed`. */
    readonly answer: (
      options: QuestionRef & { readonly answers: ReadonlyArray<string> }
    ) => Effect.Effect<void, InvalidInput | QuestionClosed | SessionNotFound | StoreError | AppendError>
    /** Refuses to answer: the run that asked stops (TO-5). */
    readonly dismissQuestion: (
      options: QuestionRef
    ) => Effect.Effect<void, InvalidInput | QuestionClosed | SessionNotFound | StoreError | AppendError>
    /** The list that the session works through, as its model last wrote it (TO-91). */
    readonly todos: (sessionID: SessionID) => Effect.Effect<ReadonlyArray<TodoItem>, SessionNotFound | StoreError>
    /** What the session spent itself, and what it spent with all those below it (TO-106). */
    readonly usage: (
      sessionID: SessionID
    ) => Effect.Effect<
      { readonly own: Usage; readonly total: Usage; readonly estimated: Estimated },
      SessionNotFound | StoreError
    >
    /** Interrupts the session, then deletes it with everything that belongs to it (EV-10). */
    readonly remove: (sessionID: SessionID) => Effect.Effect<void, SessionNotFound | LogUnavailable>
  }
>() {}
