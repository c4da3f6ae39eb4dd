/**
 * Reads the frames of one connection: server-sent events, their data as schemas. Spec: HT-44..HT-48 in specs/http.md.
 */
import * as Sse from "@effect/experimental/Sse"
import { Effect, Option, Predicate, Schema, Stream } from "effect"
import * as EventFrames from "@daybook/api/wire/EventFrames"
import { durableDefinitions, LiveEvent, SessionEvent } from "@daybook/log/events/SessionEvents"
import { UnexpectedAnswer } from "../connection/ClientError.ts"

/** A frame of the connection. */
export type Frame =
  | EventFrames.Frame
  /** An event of a type that this build does not know. It only moves the cursor. */
  | { readonly frame: "unknown"; readonly cursor: string }

/** The largest frame in characters: larger than any event that a log keeps. */
const maxEventSize = 256 * 1024 * 1024

const known: ReadonlySet<string> = new Set(durableDefinitions.map(({ type }) => type))

const Json = Schema.parseJson()
const decodeEvent = Schema.decodeUnknown(SessionEvent)
const decodeLive = Schema.decodeUnknownOption(LiveEvent)
const decodeSeam = Schema.decodeUnknown(EventFrames.Seam)
const decodeEnd = Schema.decodeUnknown(EventFrames.End)

const isKnown = (event: unknown): boolean =>
  Predicate.hasProperty(event, "type") && typeof event.type === "string" && known.has(event.type)

/** What a server-sent event says; nothing for a kind that this build does not know. */
const frameOf = Effect.fnUntraced(
  function* ({ data, event, id: cursor }: Sse.Event) {
    const value = yield* Schema.decodeUnknown(Json)(data)
    switch (event) {
      case "event":
        if (cursor === undefined) return yield* new UnexpectedAnswer({ details: "an event has no cursor" })
        if (!isKnown(value)) return Option.some<Frame>({ frame: "unknown", cursor })
        return Option.some<Frame>({ frame: "event", cursor, event: yield* decodeEvent(value) })
      case "replay.complete":
        return Option.some<Frame>({ frame: "replay.complete", ...(yield* decodeSeam(value)) })
      case "live":
        return Option.map(decodeLive(value), (live): Frame => ({ frame: "live", live }))
      case "end":
        return Option.some<Frame>({ frame: "end", ...(yield* decodeEnd(value)) })
      default:
        return Option.none<Frame>()
    }
  },
  Effect.catchTag("ParseError", ({ message }) => new UnexpectedAnswer({ details: message }))
)

/** The frames in the text of a connection. */
export const parsed = <E>(text: Stream.Stream<string, E>): Stream.Stream<Frame, E | UnexpectedAnswer> =>
  Stream.suspend(() => {
    const events: Array<Sse.Event> = []
    const parser = Sse.makeParser(
      (event) => {
        if (event._tag === "Event") events.push(event)
      },
      { maxEventSize }
    )
    return text.pipe(
      Stream.mapConcatEffect((piece) => {
        const fault = parser.feed(piece)
        if (fault !== undefined) return new UnexpectedAnswer({ details: fault.message })
        return Effect.forEach(events.splice(0), frameOf)
      }),
      Stream.filterMap((frame) => frame)
    )
  })
