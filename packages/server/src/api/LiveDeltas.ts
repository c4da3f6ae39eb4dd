/**
 * Holds the deltas of a session until its reader can take them, joined by their text. What the reader gets of a text is a
 * beginning of it, follows the text's start, and ends before the stored text: a text whose beginning is not known, or that
 * grew beyond the limit before the reader took it, has no more deltas. Spec: HT-46 in specs/http.md.
 */
import type { LiveEvent, SessionEvent } from "@daybook/log/events/SessionEvents"
import type { OpenText } from "@daybook/log/log/EventLog"

export interface LiveDeltas {
  /** Takes a delta. */
  readonly heard: (event: LiveEvent) => void
  /** Takes a stored event that the reader gets now. */
  readonly stored: (event: SessionEvent) => void
  /** The deltas that the reader can take now, which it then has. */
  readonly take: () => ReadonlyArray<LiveEvent>
}

/** Code units that wait for a reader, of all texts. */
const waitingLimit = 262_144
/** Texts that are remembered as ended: their last deltas may be heard late. */
const rememberedEnds = 256

const keyOf = (event: LiveEvent): string => {
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
  if (type === "session.next.text.started" || type === "session.next.text.ended") return `text ${data.textID}`
  if (type === "session.next.reasoning.started" || type === "session.next.reasoning.ended") {
    return `reasoning ${data.reasoningID}`
  }
  if (type === "session.next.tool.input.started" || type === "session.next.tool.input.ended") {
    return `input ${data.callID}`
  }
  if (
    type === "session.next.compaction.started" ||
    type === "session.next.compaction.ended" ||
    type === "session.next.compaction.failed"
  ) {
    return `compaction ${data.messageID}`
  }
  return undefined
}

const textOf = (event: LiveEvent): string =>
  event.type === "session.next.compaction.delta" ? event.data.text : event.data.delta

/** The same delta with another text. */
const withText = (event: LiveEvent, text: string): LiveEvent => {
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

/** The first delta of a text that has started, if it is one that `before` can hold. */
const firstOf = ({ data, sessionID, type }: SessionEvent, delta: string): LiveEvent | undefined => {
  if (type === "session.next.text.started") {
    const { assistantMessageID, textID } = data
    return { type: "session.next.text.delta", sessionID, data: { assistantMessageID, textID, delta } }
  }
  if (type === "session.next.reasoning.started") {
    const { assistantMessageID, reasoningID } = data
    return { type: "session.next.reasoning.delta", sessionID, data: { assistantMessageID, reasoningID, delta } }
  }
  return undefined
}

/** `before` has the open texts at the time of the subscription, each with its content up to then, if that is known. */
export const make = (before: ReadonlyArray<OpenText>): LiveDeltas => {
  /** The content of each open text so far. It is sent with the first delta, which names the message of the text. */
  const said = new Map(before.map(({ id, said, type }) => [`${type} ${id}`, said]))
  const started = new Set(said.keys())
  const waiting = new Map<string, LiveEvent>()
  /** Texts without further deltas, the oldest first. */
  const silent = new Set<string>([...said].flatMap(([key, text]) => (text === undefined ? [key] : [])))
  let length = 0

  const drop = (key: string) => {
    const event = waiting.get(key)
    if (event === undefined) return
    length -= textOf(event).length
    waiting.delete(key)
  }

  const silence = (key: string) => {
    drop(key)
    started.delete(key)
    said.delete(key)
    silent.add(key)
    for (const oldest of silent) {
      if (silent.size <= rememberedEnds) break
      silent.delete(oldest)
    }
  }

  const add = (key: string, event: LiveEvent) => {
    const before = waiting.get(key)
    const added = textOf(event).length
    if (before !== undefined && length + added > waitingLimit) return silence(key)
    length += added
    waiting.set(key, before === undefined ? event : withText(event, textOf(before) + textOf(event)))
  }

  return {
    heard: (event) => {
      const key = keyOf(event)
      if (silent.has(key)) return
      const before = said.get(key) ?? ""
      // The event itself, where it can be: it is encoded once for all readers.
      add(key, before === "" ? event : withText(event, before + textOf(event)))
      said.delete(key)
    },
    stored: (event) => {
      // Texts that a failed step left open have no end of their own.
      if (event.type === "session.next.step.ended" || event.type === "session.next.step.failed") {
        for (const key of started) if (!key.startsWith("compaction")) silence(key)
        return
      }
      const key = boundaryOf(event)
      if (key === undefined) return
      if (!event.type.endsWith(".started")) return silence(key)
      started.add(key)
      const first = firstOf(event, said.get(key) ?? "")
      if (first === undefined || textOf(first) === "") return
      said.delete(key)
      add(key, first)
    },
    take: () => {
      const taken = [...waiting].filter(([key]) => started.has(key))
      for (const [key] of taken) drop(key)
      return taken.map(([, event]) => event)
    }
  }
}
