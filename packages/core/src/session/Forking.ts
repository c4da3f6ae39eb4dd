/**
 * Forks a session: a new session that begins with the history of another one, up to a message. Reads the source page by
 * page and appends in portions; a fork that fails leaves nothing. Spec: HP-30..HP-34 in specs/sessions.md.
 */
import { Array as Arr, Effect, Option, Schema } from "effect"
import * as HistoryPath from "@daybook/log/domain/HistoryPath"
import { Identifiers, type MessageID, SessionID } from "@daybook/log/domain/Identifiers"
import { InvalidInput, validate } from "@daybook/log/domain/InvalidInput"
import type { Session } from "@daybook/log/domain/Message"
import { type Draft, draft, type EventIn, type SessionEvent } from "@daybook/log/events/SessionEvents"
import { EventLog } from "@daybook/log/log/EventLog"
import { SessionStore } from "@daybook/log/store/SessionStore"
import * as SessionRunner from "../runner/SessionRunner.ts"
import { present } from "@daybook/log/support/Optional"
import { makePlaces, targetOf } from "./Branching.ts"
import type { Existing } from "./Placement.ts"
import type { Forked, ForkOptions } from "./SessionOptions.ts"

// Repeats the events of a session's history in a fork, with new message ids, and without what belongs to the session
// alone.

/** How ids and sequence numbers of the source read in the fork. */
interface Renaming {
  /** The new id of a message of the history; undefined for a message that the fork does not have. */
  readonly message: (id: MessageID) => MessageID | undefined
  /** The new sequence number of the first repeated event at or after this one. */
  readonly seq: (seq: number) => number | undefined
}

/** The message that the event makes or belongs to; undefined for an event without one. */
const messageOf = (event: SessionEvent, shells: ReadonlyMap<string, MessageID>): MessageID | undefined => {
  const { data } = event
  if ("assistantMessageID" in data) return data.assistantMessageID
  if ("messageID" in data && event.type !== "session.next.leaf.moved" && event.type !== "session.next.forked") {
    return data.messageID
  }
  return event.type === "session.next.shell.ended" ? shells.get(event.data.callID) : undefined
}

/** The event in the fork; undefined if the fork does not repeat it. */
export const repeated = (event: SessionEvent, { message, seq }: Renaming): Draft | undefined => {
  const inMessage = <Data extends { readonly messageID: MessageID }>({ messageID, ...data }: Data) => {
    const id = message(messageID)
    return id && { ...data, messageID: id }
  }
  const inStep = <Data extends { readonly assistantMessageID: MessageID }>({ assistantMessageID, ...data }: Data) => {
    const id = message(assistantMessageID)
    return id && { ...data, assistantMessageID: id }
  }
  switch (event.type) {
    case "session.next.agent.switched":
    case "session.next.model.switched":
    case "session.next.prompted":
    case "session.next.prompt.admitted":
    case "session.next.prompt.promoted":
    case "session.next.context.updated":
    case "session.next.synthetic":
    case "session.next.shell.started":
    case "session.next.branch.summarized":
    case "session.next.context.edited":
    case "session.next.part.withheld": {
      const data = inMessage(event.data)
      // The spread keeps the payload of the event's own type.
      return data && ({ type: event.type, data } as Draft)
    }
    case "session.next.step.started":
    case "session.next.step.ended":
    case "session.next.step.failed":
    case "session.next.text.started":
    case "session.next.text.ended":
    case "session.next.reasoning.started":
    case "session.next.reasoning.ended":
    case "session.next.tool.input.started":
    case "session.next.tool.input.ended":
    case "session.next.tool.called":
    case "session.next.tool.success":
    case "session.next.tool.failed": {
      const data = inStep(event.data)
      return data && ({ type: event.type, data } as Draft)
    }
    case "session.next.compaction.ended": {
      const { firstKeptSeq, keptSeq, ...rest } = event.data
      const data = inMessage(rest)
      const [first, kept] = [firstKeptSeq, keptSeq].map((each) => (each === undefined ? undefined : seq(each)))
      const seqs = present({ firstKeptSeq: first, keptSeq: kept })
      return data && draft("session.next.compaction.ended", { ...data, ...seqs })
    }
    case "session.next.shell.ended":
      return draft("session.next.shell.ended", event.data)
    case "session.next.instructions.discovered":
      return draft("session.next.instructions.discovered", event.data)
    default:
      event satisfies EventIn<
        "about" | "prompts" | "steps" | "requests" | "calls" | "compactions" | "tree" | "decisions" | "shells"
      >
      return undefined
  }
}

/** The types that change what a model is shown of a message, on their branch only. */
const edits: ReadonlySet<SessionEvent["type"]> = new Set(["session.next.context.edited", "session.next.part.withheld"])

/** The types that make a message. */
const makes: ReadonlySet<SessionEvent["type"]> = new Set([
  "session.next.agent.switched",
  "session.next.model.switched",
  "session.next.prompted",
  "session.next.prompt.promoted",
  "session.next.context.updated",
  "session.next.synthetic",
  "session.next.shell.started",
  "session.next.step.started",
  "session.next.compaction.ended",
  "session.next.branch.summarized"
])

/** Events per append. */
const portion = 256

/** The message that a waiting prompt's admission will make, once it is promoted. */
type Admission = Extract<SessionEvent, { readonly type: "session.next.prompt.admitted" }>

/** What a fork has so far of the history at `path`. */
class Copy {
  readonly ids = new Map<MessageID, MessageID>()
  readonly labels = new Map<MessageID, string>()
  private readonly shells = new Map<string, MessageID>()
  private readonly waiting = new Map<MessageID, Admission>()
  /** Old and new sequence numbers of the messages, ascending. */
  private readonly places: Array<readonly [old: number, now: number]> = []
  private drafts: Array<Draft> = []
  private times: Array<number> = []
  private next = 1
  private readonly path: HistoryPath.HistoryPath

  constructor(path: HistoryPath.HistoryPath) {
    this.path = path
  }

  /** The message of the source that the event makes; undefined if it makes none that the fork has. */
  opens(event: SessionEvent): MessageID | undefined {
    const message = messageOf(event, this.shells)
    const isNew = message !== undefined && !this.ids.has(message) && makes.has(event.type)
    return isNew && HistoryPath.contains(this.path, event.seq) ? message : undefined
  }

  /** The message that the next event opens has this id in the fork. */
  open(message: MessageID, id: MessageID, event: SessionEvent): void {
    this.ids.set(message, id)
    if (event.type === "session.next.shell.started") this.shells.set(event.data.callID, message)
    const admission = this.waiting.get(message)
    if (admission !== undefined) this.add(admission)
    this.places.push([event.seq, this.next])
  }

  take(event: SessionEvent): void {
    if (event.type === "session.next.prompt.admitted") return void this.waiting.set(event.data.messageID, event)
    if (event.type === "session.next.prompt.withdrawn") return void this.waiting.delete(event.data.messageID)
    if (event.type === "session.next.labeled") {
      const { label, messageID } = event.data
      return label === undefined ? void this.labels.delete(messageID) : void this.labels.set(messageID, label)
    }
    if (event.type === "session.next.prompt.promoted") this.waiting.delete(event.data.messageID)
    if (this.isIn(event)) this.add(event)
  }

  /** Events that are not appended yet, and the sequence number after which they go. */
  flush() {
    const { drafts, next, times } = this
    this.drafts = []
    this.times = []
    return { drafts, expectedSeq: next - drafts.length - 1, times }
  }

  isFull(): boolean {
    return this.drafts.length >= portion
  }

  /** Whether the event is part of the history: by its message, or else by its own place. An edit needs both. */
  private isIn(event: SessionEvent): boolean {
    const message = messageOf(event, this.shells)
    const isOnPath = () => HistoryPath.contains(this.path, event.seq)
    return message === undefined ? isOnPath() : this.ids.has(message) && (!edits.has(event.type) || isOnPath())
  }

  private add(event: SessionEvent): void {
    const made = repeated(event, {
      message: (id) => this.ids.get(id),
      seq: (seq) => this.places.find(([old]) => old >= seq)?.[1]
    })
    if (made === undefined) return
    this.drafts.push(made)
    this.times.push(event.created)
    this.next += 1
  }
}

export const make = Effect.fnUntraced(function* ({ imported, unlessRemoved }: Existing) {
  const log = yield* EventLog
  const store = yield* SessionStore
  const identifiers = yield* Identifiers
  const recovery = yield* SessionRunner.makeRecovery(false)
  const { placeOf, promptOf } = yield* makePlaces

  const append = ({ drafts, ...at }: ReturnType<Copy["flush"]>, to: SessionID) =>
    Arr.isNonEmptyReadonlyArray(drafts) ? log.append(to, drafts, at) : Effect.void

  /** Appends what the fork repeats of the source's history. */
  const copied = Effect.fnUntraced(function* (source: Session, to: SessionID, path: HistoryPath.HistoryPath) {
    const copy = new Copy(path)
    const head = yield* log.head(source.id)
    let cursor = -1
    for (let hasMore = true; hasMore && cursor < head.seq;) {
      const page = yield* log.read({ sessionID: source.id, after: cursor, incarnation: head.incarnation })
      for (const event of page.events.filter(({ seq }) => seq <= head.seq)) {
        const message = copy.opens(event)
        if (message !== undefined) copy.open(message, yield* identifiers.message, event)
        copy.take(event)
        if (copy.isFull()) yield* append(copy.flush(), to)
      }
      cursor = page.cursor
      hasMore = page.hasMore
    }
    yield* append(copy.flush(), to)
    return copy
  })

  /** Ends the copy: what the history left open is settled, then the fork's own log begins. */
  const conclude = Effect.fnUntraced(function* (
    source: Session,
    to: SessionID,
    messageID: MessageID | undefined,
    { ids, labels }: Copy
  ) {
    const { drafts: open } = yield* recovery(yield* store.get(to))
    const named = [...labels].flatMap(([id, label]) => {
      const now = ids.get(id)
      return now === undefined ? [] : [draft("session.next.labeled", { messageID: now, label })]
    })
    const budget = source.budget === undefined ? [] : [draft("session.next.budget.set", { budget: source.budget })]
    const forked = draft("session.next.forked", { from: source.id, ...present({ messageID }) })
    yield* log.append(to, Arr.append<Draft, Draft>([...open, ...named, ...budget], forked))
  })

  /** The first event: place and family of the source now, agent and model as it was created; switches follow. */
  const createdFrom = Effect.fnUntraced(function* (source: Session, title: string | undefined) {
    const first = yield* store.event(source.id, 0)
    const { agent, model } = first?.type === "session.created" ? first.data : {}
    const name = title ?? source.title
    return draft("session.created", {
      location: source.location,
      ...present({ agent, model, title: name, parentID: source.parentID, instructions: source.instructions })
    })
  })

  const newID = Effect.fnUntraced(function* (given: string | undefined) {
    if (given === undefined) return yield* identifiers.session
    const id = yield* validate("id", SessionID, given)
    const found = yield* Effect.option(store.get(id))
    if (Option.isSome(found)) return yield* new InvalidInput({ field: "id", details: `${id} exists; use a new id` })
    return id
  })

  const fork = Effect.fn("Sessions.fork")(function* ({ id, messageID, sessionID, title: given }: ForkOptions) {
    const source = yield* store.get(sessionID)
    const title = given === undefined ? undefined : yield* validate("title", Schema.String, given)
    const place = messageID === undefined ? undefined : yield* placeOf(sessionID, messageID)
    const target = place === undefined ? yield* store.leaf(sessionID) : targetOf(place)
    const prompt = place === undefined ? {} : yield* promptOf(sessionID, place)
    const to = yield* newID(id)
    yield* log.append(to, [yield* createdFrom(source, title)], { expectedSeq: -1 })
    const concluded = Effect.flatMap(copied(source, to, target.path), (copy) =>
      conclude(source, to, target.messageID, copy)
    )
    yield* Effect.onError(concluded, () => Effect.ignoreLogged(log.remove(to)))
    return { session: yield* store.get(to), ...prompt } satisfies Forked
  })

  return {
    fork: (options: ForkOptions) =>
      unlessRemoved(options.sessionID, Effect.zipRight(imported(options.sessionID), fork(options)))
  }
})
