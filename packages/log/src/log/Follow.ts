/**
 * A session as one reader sees it: stored events, the seam, then live deltas in their place among later events. All
 * readers in this process and the HTTP streams use these rules. Spec: LG-90 in specs/log.md.
 *
 *   tail ────────┐
 *   live deltas ─┴─> mailbox ─> reader
 */
import { Chunk, Effect, Mailbox, Stream } from "effect"
import type { SessionID } from "../domain/Identifiers.ts"
import type { EventIn, LiveEvent, SessionEvent } from "../events/SessionEvents.ts"
import type { Followed, OpenText, ReadError, ReplayComplete, Service } from "./EventLog.ts"
import { keepNewest } from "../support/Newest.ts"

// Holds the deltas of a session, joined by text, until its reader can take them. A reader gets a beginning of a text
// from the text's start; a text that lost its beginning, or grew too long, has no more deltas.

export interface LiveDeltas {
  /** Takes a delta. */
  readonly heard: (event: LiveEvent) => void
  readonly stored: (event: SessionEvent) => void
  /** The reader has all that was stored when it came. */
  readonly seam: () => void
  /** The deltas that the reader can take now, which it then has; none before the seam. */
  readonly take: () => ReadonlyArray<LiveEvent>
}

/** Code units that wait for a reader, of all texts, besides what was said before it came. */
const waitingLimit = 262_144
/** Texts that are remembered as ended: their last deltas may be heard late. */
const rememberedEnds = 256

/** The text that a delta belongs to. */
export const keyOf = (event: LiveEvent): string => {
  switch (event.type) {
    case "session.next.text.delta":
      return `text ${event.data.textID}`
    case "session.next.reasoning.delta":
      return `reasoning ${event.data.reasoningID}`
    case "session.next.tool.input.delta":
      return `input ${event.data.callID}`
    case "session.next.compaction.delta":
      return `compaction ${event.data.messageID}`
    default:
      return event satisfies never
  }
}

/** The text that starts or ends with a stored event. */
const boundaryOf = (event: SessionEvent): string | undefined => {
  const { data, type } = event
  switch (type) {
    case "session.next.text.started":
    case "session.next.text.ended":
      return `text ${data.textID}`
    case "session.next.reasoning.started":
    case "session.next.reasoning.ended":
      return `reasoning ${data.reasoningID}`
    case "session.next.tool.input.started":
    case "session.next.tool.input.ended":
      return `input ${data.callID}`
    case "session.next.compaction.started":
    case "session.next.compaction.ended":
    case "session.next.compaction.failed":
      return `compaction ${data.messageID}`
    default:
      event satisfies EventIn<
        "about" | "prompts" | "steps" | "requests" | "calls" | "compactions" | "tree" | "decisions" | "shells"
      >
      return undefined
  }
}

export const textOf = (event: LiveEvent): string =>
  event.type === "session.next.compaction.delta" ? event.data.text : event.data.delta

/** The same delta with another text. */
export const withText = (event: LiveEvent, text: string): LiveEvent => {
  switch (event.type) {
    case "session.next.text.delta":
      return { ...event, data: { ...event.data, delta: text } }
    case "session.next.reasoning.delta":
      return { ...event, data: { ...event.data, delta: text } }
    case "session.next.tool.input.delta":
      return { ...event, data: { ...event.data, delta: text } }
    case "session.next.compaction.delta":
      return { ...event, data: { ...event.data, text } }
    default:
      return event satisfies never
  }
}

/** What was said of a text so far, as one delta. */
const saidBefore = (sessionID: SessionID, { assistantMessageID, id, type }: OpenText, delta: string): LiveEvent =>
  type === "text"
    ? { type: "session.next.text.delta", sessionID, data: { assistantMessageID, textID: id, delta } }
    : { type: "session.next.reasoning.delta", sessionID, data: { assistantMessageID, reasoningID: id, delta } }

interface Waiting {
  readonly event: LiveEvent
  /** Code units that count for the limit. */
  readonly counted: number
}

/** `open` has the open texts at the time of the subscription, each with its content up to then, if that is known. */
export const makeLiveDeltas = (sessionID: SessionID, open: ReadonlyArray<OpenText>): LiveDeltas => {
  /** Texts that have started, each with its message; a compaction has none. */
  const started = new Map<string, string | undefined>()
  const waiting = new Map<string, Waiting>()
  /** Texts without further deltas, the oldest first. */
  const silent = new Set<string>()
  let [length, follows] = [0, false]
  for (const text of open) {
    const key = `${text.type} ${text.id}`
    started.set(key, text.assistantMessageID)
    if (text.said === undefined) silent.add(key)
    else if (text.said !== "") waiting.set(key, { event: saidBefore(sessionID, text, text.said), counted: 0 })
  }

  const drop = (key: string) => {
    length -= waiting.get(key)?.counted ?? 0
    waiting.delete(key)
  }

  const silence = (key: string) => {
    drop(key)
    started.delete(key)
    silent.add(key)
    keepNewest(silent, rememberedEnds)
  }

  return {
    heard: (event) => {
      const key = keyOf(event)
      if (silent.has(key)) return
      const before = waiting.get(key)
      const added = textOf(event).length
      if (before !== undefined && length + added > waitingLimit) return silence(key)
      length += added
      // The event itself, where it can be: it is encoded once for all readers.
      waiting.set(key, {
        event: before === undefined ? event : withText(event, textOf(before.event) + textOf(event)),
        counted: (before?.counted ?? 0) + added
      })
    },
    stored: (event) => {
      // Texts that a failed step left open have no end of their own.
      if (event.type === "session.next.step.ended" || event.type === "session.next.step.failed") {
        for (const [key, message] of started) if (message === event.data.assistantMessageID) silence(key)
        return
      }
      const key = boundaryOf(event)
      if (key === undefined) return
      if (!event.type.endsWith(".started")) silence(key)
      else started.set(key, "assistantMessageID" in event.data ? event.data.assistantMessageID : undefined)
    },
    seam: () => {
      follows = true
    },
    take: () => {
      if (!follows || waiting.size === 0) return []
      const taken: Array<LiveEvent> = []
      for (const [key, { event }] of waiting) {
        if (!started.has(key)) continue
        drop(key)
        taken.push(event)
      }
      return taken
    }
  }
}

// One stream of both.

/** Items that wait between the tail and the reader. */
const ahead = 16

const more = { type: "more" } as const

/** `EventLog.follow` over the other verbs of a log. */
export const makeFollow =
  ({ hear, tailMarked }: Pick<Service, "hear" | "tailMarked">): Service["follow"] =>
  (from) =>
    Stream.unwrapScoped(
      Effect.gen(function* () {
        const mailbox = yield* Mailbox.make<SessionEvent | ReplayComplete | typeof more, ReadError>(ahead)
        let deltas = makeLiveDeltas(from.sessionID, [])
        yield* hear(from.sessionID, (open) => {
          deltas = makeLiveDeltas(from.sessionID, open)
          return (event) => {
            deltas.heard(event)
            // If the mailbox is full, its items wake the reader as well.
            mailbox.unsafeOffer(more)
          }
        })
        yield* Effect.forkScoped(
          Mailbox.into(
            Stream.runForEachChunk(tailMarked(from), (items) => mailbox.offerAll(items)),
            mailbox
          )
        )
        const passed = (item: SessionEvent | ReplayComplete | typeof more): ReadonlyArray<Followed> => {
          if (item.type === "more") return deltas.take()
          if (item.type === "replay.complete") deltas.seam()
          else deltas.stored(item)
          return [item, ...deltas.take()]
        }
        return Stream.mapChunks(Mailbox.toStream(mailbox), (items) =>
          Chunk.unsafeFromArray(Chunk.toReadonlyArray(items).flatMap(passed))
        )
      })
    )
