/** The client for programs without Effect: promises, async iterables, and errors with a `code`. */
import type { Bodies, LiveEvent, Queries, Results, SessionEvent } from "./wire.d.ts"

export type * from "./wire.d.ts"

/** Why a call failed. `code` is stable: `SessionNotFound`, `Unauthorized`, `ServerUnreachable`. */
export declare class DaybookError extends Error {
  override readonly name: "DaybookError"
  readonly code: string
  /** The fields of the error, such as `sessionID`. */
  readonly fields: Readonly<Record<string, unknown>>
  constructor(error: { readonly _tag: string; readonly message: string })
}

/** How to reach a server. */
export interface Options {
  /** For example `http://127.0.0.1:4310`. */
  readonly baseUrl: string
  readonly token: string
  /** How long a stream tries to connect again before it fails: milliseconds, or a text as `30 seconds`. Default: two minutes. */
  readonly giveUpAfter?: number | `${number} ${"millis" | "seconds" | "minutes" | "hours"}`
  /** Ends every call and every stream; `with` gives one to some. */
  readonly signal?: AbortSignal | undefined
}

/** A client of a server. It holds no connection, so nothing needs to be closed. */
export declare const connect: (options: Options) => Daybook

/** A verb about one session takes its id with its other options. */
export interface InSession {
  readonly sessionID: string
}

/** An event's position in its session, exclusive. */
export interface From extends InSession {
  readonly after?: number | undefined
  /** The life of the session that the number belongs to. */
  readonly incarnation?: number | undefined
}

/** What to follow: one session, or all, from a cursor on. */
export interface FollowOptions {
  /** Absent for the feed of all sessions. */
  readonly sessionID?: string | undefined
  /** A cursor of an earlier item. Default: before the first event. */
  readonly after?: string | undefined
  /** Also deltas of running turns, of one session. */
  readonly live?: boolean | undefined
  /** Only events of these types; the cursor passes the others. */
  readonly types?: ReadonlyArray<SessionEvent["type"]> | undefined
  /** False ends the stream where stored events end. */
  readonly follow?: boolean | undefined
}

/** An event with its cursor, the place where stored events end, or a delta. */
export type Item =
  | { readonly frame: "event"; readonly cursor: string; readonly event: SessionEvent }
  | { readonly frame: "replay.complete"; readonly cursor: string }
  | { readonly frame: "live"; readonly live: LiveEvent }

/** Where stored events end. */
export interface ReplayComplete {
  readonly type: "replay.complete"
  readonly cursor: number
}

/** The verbs. Each fails with a `DaybookError`, or with the reason of the signal. */
export interface Daybook {
  /** The same verbs, ended by this signal. */
  readonly with: (options: { readonly signal: AbortSignal }) => Daybook

  readonly create: (options: Bodies["create"]) => Promise<Results["create"]>
  readonly named: (options: Bodies["named"]) => Promise<Results["named"]>
  /** The session at an address, if any. */
  readonly addressed: (
    address: Bodies["addressed"]["address"]
  ) => Promise<Exclude<Results["addressed"], null> | undefined>
  readonly place: (sessionID: string, placement: Bodies["place"]) => Promise<void>
  readonly get: (sessionID: string) => Promise<Results["get"]>
  readonly list: (options?: Queries["list"]) => Promise<Results["list"]>
  readonly active: () => Promise<Results["active"]>
  readonly interrupted: () => Promise<Results["interrupted"]>
  readonly waiting: () => Promise<Results["waiting"]>
  readonly usage: (sessionID: string) => Promise<Results["usage"]>
  readonly metrics: (sessionID: string) => Promise<Results["metrics"]>
  readonly limits: (sessionID: string) => Promise<Results["limits"]>
  readonly rename: (sessionID: string, title: string) => Promise<void>
  readonly switchAgent: (sessionID: string, agent: string) => Promise<void>
  readonly switchModel: (sessionID: string, model: Bodies["switchModel"]) => Promise<void>
  readonly move: (sessionID: string, location: Bodies["move"]) => Promise<void>
  readonly setBudget: (sessionID: string, budget: Bodies["setBudget"]) => Promise<void>
  readonly label: (options: InSession & { readonly messageID: string } & Bodies["label"]) => Promise<void>
  readonly remove: (sessionID: string) => Promise<void>

  readonly messages: (options: InSession & Queries["messages"]) => Promise<Results["messages"]>
  /** One message of the visible transcript, if it has one with this id. */
  readonly message: (sessionID: string, messageID: string) => Promise<Exclude<Results["message"], null> | undefined>
  readonly context: (sessionID: string) => Promise<Results["context"]>
  readonly tree: (options: InSession & Queries["tree"]) => Promise<Results["tree"]>
  readonly todos: (sessionID: string) => Promise<Results["todos"]>
  readonly request: (options: InSession & Queries["request"]) => Promise<Results["request"]>

  readonly prompt: (options: InSession & Bodies["prompt"]) => Promise<Results["prompt"]>
  readonly inbox: (sessionID: string) => Promise<Results["inbox"]>
  readonly withdraw: (sessionID: string, messageID: string) => Promise<void>
  /** Prompts and returns the settled answer; with the same id, the same answer. Without an id, the client makes one up. */
  readonly ask: (
    options: InSession & Omit<Bodies["ask"], "id"> & { readonly id?: string | undefined }
  ) => Promise<Results["ask"]>
  /** Waits until nothing runs for the session, then returns it. Starts nothing. */
  readonly wait: (sessionID: string) => Promise<Results["get"]>
  /** Runs the session now, with at least one turn, and returns when it has settled; joins a run in progress. */
  readonly resume: (sessionID: string) => Promise<void>
  readonly interrupt: (sessionID: string, options?: Bodies["interrupt"]) => Promise<void>
  readonly settle: (sessionID: string) => Promise<Results["settle"]>
  readonly compact: (sessionID: string) => Promise<Results["compact"]>
  readonly unprune: (sessionID: string) => Promise<void>
  readonly branch: (options: InSession & Bodies["branch"]) => Promise<Results["branch"]>
  readonly fork: (options: InSession & Bodies["fork"]) => Promise<Results["fork"]>
  readonly reset: (sessionID: string) => Promise<Results["reset"]>
  readonly undo: (options: InSession & Bodies["undo"]) => Promise<Results["undo"]>
  readonly redo: (options: InSession & Bodies["redo"]) => Promise<Results["redo"]>

  readonly questions: (sessionID: string) => Promise<Results["questions"]>
  readonly answer: (
    options: InSession & { readonly messageID: string; readonly callID: string } & Bodies["answer"]
  ) => Promise<void>
  readonly dismissQuestion: (
    question: InSession & { readonly messageID: string; readonly callID: string }
  ) => Promise<void>

  /** The calls of all sessions that wait for a person's permission. */
  readonly permissions: () => Promise<Results["allPermissions"]>
  readonly decide: (sessionID: string, ask: string, decision: Bodies["decide"]) => Promise<void>

  /** Where the bytes of the database or of a session are, and what the session did. */
  readonly stats: (what?: {
    /** One session of the database. Default: the whole database. */
    readonly sessionID?: string | undefined
    /** Count everything, also if the database is large. */
    readonly exact?: boolean | undefined
  }) => Promise<Results["stats"]>
  readonly search: (options: Queries["search"]) => Promise<Results["search"]>
  readonly prompts: (options?: Queries["prompts"]) => Promise<Results["prompts"]>
  readonly models: () => Promise<Results["models"]>
  readonly agents: (options?: Queries["agents"]) => Promise<Results["agents"]>
  readonly templates: (options?: Queries["templates"]) => Promise<Results["templates"]>
  readonly shells: () => Promise<Results["shells"]>
  readonly nodes: () => Promise<Results["nodes"]>

  readonly head: (sessionID: string) => Promise<Results["head"]>
  /** One page of events after a number; `limit` is at most 100. */
  readonly history: (options: From & { readonly limit?: number | undefined }) => Promise<{
    readonly events: ReadonlyArray<SessionEvent>
    readonly cursor: number
    readonly incarnation: number
    readonly hasMore: boolean
  }>
  /** Events with their cursors, for callers that keep cursors: they are opaque, and valid in this database alone. */
  readonly follow: (options: FollowOptions) => AsyncIterable<Item>
  /** The session's events after the number, then new ones, over connections that break. */
  readonly events: (options: From) => AsyncIterable<SessionEvent>
  /** `events` with one marker where stored events end. */
  readonly eventsMarked: (options: From) => AsyncIterable<SessionEvent | ReplayComplete>
  /** `eventsMarked` with the creation of the session, as the log has it. */
  readonly tail: (options: From) => AsyncIterable<SessionEvent | ReplayComplete>
  /** Deltas of the running turn. A connection that breaks loses some: the stored text has them all. */
  readonly live: (sessionID: string) => AsyncIterable<LiveEvent>
  /** The events of all sessions after a position, in global order, then new ones. */
  readonly feed: (options?: { readonly after?: number | undefined }) => AsyncIterable<SessionEvent>
}
