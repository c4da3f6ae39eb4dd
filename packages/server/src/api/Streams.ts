/**
 * The open streams of a server: encodes their frames once, keeps them alive, and ends them when the server drains. Spec:
 * HT-44..HT-52 in specs/http.md.
 */
import type { ServerResponse } from "node:http"
import { Chunk, Context, Duration, Effect, Either, Layer, Option, Queue, Schedule, type Scope, Stream } from "effect"
import type { End } from "@daybook/api/wire/EventFrames"
import type { SessionEvent } from "@daybook/log/events/SessionEvents"
import type { LiveSubscription, ReplayComplete } from "@daybook/log/log/EventLog"
import { Drain } from "./Drain.ts"
import * as EventEncoding from "./EventEncoding.ts"
import * as LiveDeltas from "./LiveDeltas.ts"
import * as OpenStream from "./OpenStream.ts"

/** What a stream sends. */
export interface Source<E> {
  /** Stored events, one seam, then new events. */
  readonly events: Stream.Stream<SessionEvent | ReplayComplete, E>
  /** Which events are sent; the cursor also passes the others. All by default. */
  readonly wanted?: ((event: SessionEvent) => boolean) | undefined
  /** Deltas of the running turn, sent after the seam. */
  readonly live?: Effect.Effect<LiveSubscription, never, Scope.Scope> | undefined
  readonly cursorOf: (event: SessionEvent) => string
  readonly seamOf: (seam: ReplayComplete) => string
  /** The cursor that the stream begins with. */
  readonly start: string
  /** False ends the stream at the seam. */
  readonly follow: boolean
  /** The last frame after a failure; its error goes to the reader. */
  readonly failed: (error: E) => Omit<End, "cursor">
}

const heartbeatEvery = Duration.seconds(15)

/** The streams of a server. */
export class Streams extends Context.Tag("@daybook/server/Streams")<
  Streams,
  {
    /** Writes a stream to the response until it ends. Fails, with nothing written, if its first events cannot be read. */
    readonly serve: <E>(
      response: ServerResponse,
      accept: string | undefined,
      source: Source<E>
    ) => Effect.Effect<void, E>
  }
>() {}

const isSeam = (item: SessionEvent | ReplayComplete): item is ReplayComplete => item.type === "replay.complete"

/** The items after the first chunk, which is read at once: a source that cannot be read is a status, not a stream. */
const begun = <A, E>(items: Stream.Stream<A, E>) =>
  Effect.gen(function* () {
    const pull = yield* Stream.toPull(items)
    const first = yield* Effect.catchAll(
      pull,
      Option.match({ onNone: () => Effect.succeed(Chunk.empty<A>()), onSome: (error) => Effect.fail(error) })
    )
    return Stream.concat(Stream.fromChunk(first), Stream.repeatEffectChunkOption(pull))
  })

/** Deltas may be taken. */
const bell = { type: "bell" } as const

type Item = SessionEvent | ReplayComplete | typeof bell

/** Hears deltas until the scope closes; the stream rings when there are new ones. After an overflow it is silent. */
const hearing = ({ live, soFar }: LiveSubscription) =>
  Effect.gen(function* () {
    const deltas = LiveDeltas.make(soFar)
    const rings = yield* Effect.acquireRelease(Queue.sliding<typeof bell>(1), Queue.shutdown)
    const hear = Stream.runForEachChunk(live, (chunk) => {
      Chunk.forEach(chunk, deltas.heard)
      return Queue.offer(rings, bell)
    })
    yield* Effect.forkScoped(Effect.ignore(hear))
    return { deltas, rings: Stream.fromQueue(rings) }
  })

type Hearing = Effect.Effect.Success<ReturnType<typeof hearing>>

/** Turns items into frames, and knows the cursor behind the last one. */
const framesOf = <E>(
  { cursorOf, seamOf, start, wanted = () => true }: Source<E>,
  encoding: EventEncoding.Encoding,
  deltas: LiveDeltas.LiveDeltas | undefined
) => {
  let [cursor, follows] = [start, false]
  const frame = (item: SessionEvent | ReplayComplete): ReadonlyArray<Buffer> => {
    if (isSeam(item)) {
      follows = true
      cursor = seamOf(item)
      return [encoding.seam({ cursor })]
    }
    deltas?.stored(item)
    cursor = cursorOf(item)
    return wanted(item) ? [encoding.event(item, cursor)] : []
  }
  return {
    cursor: () => cursor,
    of: (items: ReadonlyArray<Item>): ReadonlyArray<Buffer> => {
      const stored = items.flatMap((item) => (item.type === "bell" ? [] : frame(item)))
      return follows && deltas !== undefined ? [...stored, ...deltas.take().map(encoding.live)] : stored
    }
  }
}

/** Writes the frames of the items; returns the cursor behind the last one, and how the source ended. */
const pump = <E>(
  items: Stream.Stream<Item, E>,
  source: Source<E>,
  stream: OpenStream.OpenStream,
  encoding: EventEncoding.Encoding,
  heard: Hearing | undefined
) => {
  const frames = framesOf(source, encoding, heard?.deltas)
  const all = heard === undefined ? items : Stream.merge(items, heard.rings, { haltStrategy: "left" })
  return Stream.runForEachChunk(all, (chunk) => stream.write(frames.of(Chunk.toReadonlyArray(chunk)))).pipe(
    Effect.either,
    Effect.map((outcome) => ({ outcome, cursor: frames.cursor() }))
  )
}

const make = Effect.gen(function* () {
  const encodings = { sse: EventEncoding.sse(), ndjson: EventEncoding.ndjson() }
  const open = new Set<OpenStream.OpenStream>()
  const drain = yield* Drain

  yield* Effect.sync(() => {
    for (const each of open) each.beat()
  }).pipe(Effect.schedule(Schedule.spaced(heartbeatEvery)), Effect.forkScoped)

  const serve = <E>(response: ServerResponse, accept: string | undefined, source: Source<E>): Effect.Effect<void, E> =>
    Effect.gen(function* () {
      const encoding = accept?.includes("ndjson") === true ? encodings.ndjson : encodings.sse
      const heard = source.live && source.follow ? yield* Effect.flatMap(source.live, hearing) : undefined
      const items = yield* begun(source.follow ? source.events : Stream.takeUntil(source.events, isSeam))
      const stream = yield* OpenStream.open(response, encoding)
      yield* Effect.acquireRelease(
        Effect.sync(() => open.add(stream)),
        () => Effect.sync(() => open.delete(stream))
      )
      const until = Stream.interruptWhenDeferred(items, drain.start)
      const { cursor, outcome } = yield* pump(until, source, stream, encoding, heard)
      if (Either.isRight(outcome)) {
        const reason = (yield* drain.begun) ? "draining" : "complete"
        yield* stream.end(encoding.end({ reason, cursor }))
      } else if (!(outcome.left instanceof OpenStream.Lost)) {
        yield* stream.end(encoding.end({ ...source.failed(outcome.left), cursor }))
      }
    }).pipe(Effect.scoped)

  return Streams.of({ serve })
})

/** No stream is open at first. */
export const layer = Layer.scoped(Streams, make)
