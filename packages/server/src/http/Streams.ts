/**
 * The open streams of a server: sends what is stored, then follows with the hub, keeps streams alive, and ends them
 * when the server drains or the token of the reader ends. Spec: HT-44..HT-52 in specs/http.md.
 */
import type { ServerResponse } from "node:http"
import {
  Cause,
  Clock,
  Context,
  Deferred,
  Duration,
  Effect,
  Either,
  Exit,
  Fiber,
  Layer,
  Runtime,
  Schedule,
  Schema,
  type Scope
} from "effect"
import { Unauthorized } from "@daybook/api/wire/Access"
import type { End } from "@daybook/api/wire/EventFrames"
import { failures } from "@daybook/api/wire/Failure"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import type { SessionEvent } from "@daybook/log/events/SessionEvents"
import { EventLog } from "@daybook/log/log/EventLog"
import { type LiveDeltas, makeLiveDeltas } from "@daybook/log/log/Follow"
import { scoped } from "@daybook/log/support/Closing"
import * as EventLoop from "@daybook/log/support/EventLoop"
import { untilLeft } from "./Answering.ts"
import type { Hub, Reader } from "./Hubs.ts"
import * as OpenStream from "./OpenStream.ts"

// Waits for a time of the clock, however far it is: one timer takes at most 24 days.

const longest = Duration.toMillis("1 day")

/** Completes at this time, in milliseconds since the epoch; at once if it has passed. */
export const until = (time: number): Effect.Effect<void> =>
  Effect.flatMap(Clock.currentTimeMillis, (now) =>
    now >= time
      ? Effect.void
      : Effect.zipRight(Effect.sleep(Duration.millis(Math.min(time - now, longest))), until(time))
  )

// The end of a server as its requests see it.

/** Whether the server ends. */
export class Drain extends Context.Tag("@daybook/server/Drain")<
  Drain,
  {
    /** Lets requests that wait return, and ends the streams. */
    readonly begin: Effect.Effect<void>
    readonly begun: Effect.Effect<boolean>
    /** Completes when the end begins. */
    readonly start: Deferred.Deferred<void>
  }
>() {}

/** The server does not end at first. */
export const drainLayer = Layer.effect(
  Drain,
  Effect.map(Deferred.make<void>(), (start) => ({
    begin: Effect.asVoid(Deferred.succeed(start, undefined)),
    begun: Deferred.isDone(start),
    start
  }))
)

/** Stored events after a position. */
export interface Page {
  readonly events: ReadonlyArray<SessionEvent>
  /** Where the next page begins. */
  readonly position: number
  readonly hasMore: boolean
}

/** What a stream sends. */
export interface Source<E, F> {
  readonly start: number
  readonly page: (after: number) => Effect.Effect<Page, E>
  readonly hub: Effect.Effect<Hub<F>, F, Scope.Scope>
  /** An error of the hub as the reader gets it. */
  readonly lost: (error: F) => E
  /** When the reader's token ends, in milliseconds since the epoch; never by default. */
  readonly expires: number | undefined
  /** False ends the stream where stored events end. */
  readonly follow: boolean
  /** Which events are sent; the cursor also passes the others. All by default. */
  readonly wanted?: ((event: SessionEvent) => boolean) | undefined
  /** The session whose deltas are sent too. */
  readonly live?: SessionID | undefined
  readonly positionOf: (event: SessionEvent) => number
  readonly cursorAt: (position: number) => string
  readonly failed: (error: E) => Omit<End, "cursor">
}

const heartbeatEvery = Duration.seconds(15)

export class Streams extends Context.Tag("@daybook/server/Streams")<
  Streams,
  {
    /** Begins a stream, which goes on in a fiber of its own. Fails, with nothing written, if its first events cannot be read. */
    readonly serve: <E, F>(
      response: ServerResponse,
      accept: string | undefined,
      source: Source<E, F>
    ) => Effect.Effect<void, E>
  }
>() {}

/** Turns events into frames, and knows the position behind the last one. */
const framesOf = <E, F>(
  { cursorAt, positionOf, start, wanted = () => true }: Source<E, F>,
  encoding: OpenStream.Encoding,
  deltas: LiveDeltas | undefined
) => {
  let position = start
  /** Moves behind the event. */
  const pass = (event: SessionEvent) => {
    deltas?.stored(event)
    position = positionOf(event)
  }
  const waiting = () => deltas?.take().map(encoding.live) ?? []
  return {
    position: () => position,
    cursor: () => cursorAt(position),
    waiting,
    of: (events: ReadonlyArray<SessionEvent>): ReadonlyArray<Buffer> => {
      const frames = events.flatMap((event) => {
        pass(event)
        return wanted(event) ? [encoding.event(event, cursorAt(position))] : []
      })
      return [...frames, ...waiting()]
    },
    stored: (events: ReadonlyArray<SessionEvent>): ReadonlyArray<Buffer> => {
      const buffers: Array<Buffer> = []
      let text = ""
      for (const event of events) {
        pass(event)
        if (wanted(event)) text += encoding.stored(event, cursorAt(position))
        if (text.length < OpenStream.writeBytes) continue
        buffers.push(Buffer.from(text))
        text = ""
      }
      return [...buffers, ...(text === "" ? [] : [Buffer.from(text)]), ...waiting()]
    },
    /** Events of unknown types stand before this position. */
    passed: (through: number) => {
      position = Math.max(position, through)
    },
    seam: (): ReadonlyArray<Buffer> => {
      deltas?.seam()
      return [encoding.seam({ cursor: cursorAt(position) }), ...waiting()]
    }
  }
}

type Frames = ReturnType<typeof framesOf>

/** A stream as the server ends it. */
interface Open {
  readonly stream: OpenStream.OpenStream
  /** The last frame when the server ends. */
  readonly last: () => Buffer
  /** Writes the last frame at once: set while the stream waits for events. */
  finish: (() => void) | undefined
  /** Ends the stream from elsewhere. */
  readonly cut: Deferred.Deferred<void>
  isCut: boolean
}

/** Ends a stream when the server ends. One that waits needs no fiber for it: ten thousand would take too long. */
const drain = (open: Open): void => {
  open.isCut = true
  if (open.finish === undefined) Deferred.unsafeDone(open.cut, Effect.void)
  else open.finish()
}

/** Gives a reader the events of the hub until it falls behind, or the hub fails. `bell` is told how to send waiting deltas. */
const attached = <E>(hub: Hub<E>, frames: Frames, open: Open, bell: Bell | undefined) =>
  Effect.async<"behind", E | OpenStream.Lost>((resume) => {
    const { last, stream } = open
    const leave = () => {
      hub.detach(reader)
      open.finish = undefined
      if (bell !== undefined) bell.ring = () => undefined
    }
    const send = (sent: ReadonlyArray<Buffer>) => {
      if (sent.length === 0 || stream.offer(sent)) return
      leave()
      resume(Effect.succeed("behind"))
    }
    const reader: Reader<E> = {
      take: (events) => send(frames.of(events)),
      fail: (error) => {
        leave()
        resume(Effect.fail(error))
      }
    }
    // Race: it was cut since the race against that ended.
    if (open.isCut || !hub.attach(reader, frames.position())) {
      resume(Effect.succeed("behind"))
      return
    }
    open.finish = () => {
      leave()
      resume(stream.finish(last()))
    }
    if (bell !== undefined) {
      bell.ring = () => send(frames.waiting())
      bell.ring()
    }
    return Effect.sync(leave)
  })

interface Bell {
  ring: () => void
}

/** Hears deltas until the scope closes, and rings when there are new ones. */
const hearing = (log: typeof EventLog.Service, sessionID: SessionID, joins: (bell: Bell) => void) =>
  Effect.gen(function* () {
    const bell: Bell = { ring: () => undefined }
    let deltas = makeLiveDeltas(sessionID, [])
    yield* log.hear(sessionID, (open) => {
      deltas = makeLiveDeltas(sessionID, open)
      return (event) => {
        deltas.heard(event)
        joins(bell)
      }
    })
    return { deltas, bell }
  })

/** For how long deltas are joined while the process is busy. */
const joinMillis = 15

/** A process is busy when its event loop works for so long at a stretch. */
const busyMillis = 5

/** Rings a bell at once, or with others after a moment while the process is busy: then fewer, larger deltas are sent. */
const makeJoins = () => {
  const isBusy = EventLoop.makeStretch(busyMillis)
  const waiting = new Set<Bell>()
  const ringAll = () => {
    const bells = [...waiting]
    waiting.clear()
    for (const bell of bells) bell.ring()
  }
  return (bell: Bell): void => {
    if (!isBusy()) return bell.ring()
    if (waiting.size === 0) setTimeout(ringAll, joinMillis)
    waiting.add(bell)
  }
}

type Last = Omit<End, "cursor">

const last = (reason: End["reason"]): Last => ({ reason })

/**
 * Sends stored pages, first those that were read ahead, the seam, and then what the hub gives. Returns where stored events end,
 * if it does not follow, and when the stream is cut. It waits for the hub in the fiber of the request: the fibers of a race would
 * live as long as the stream.
 */
const send = <E, F>(
  { follow, hub: acquire, lost, page }: Source<E, F>,
  ahead: Array<Page>,
  frames: Frames,
  open: Open,
  bell: Bell | undefined
) =>
  Effect.gen(function* () {
    const { cut, stream } = open
    let hub: Hub<F> | undefined
    // Written whole or not at all: the cursor is behind what was written.
    const write = (make: () => ReadonlyArray<Buffer>) =>
      Effect.uninterruptible(Effect.suspend(() => stream.write(make())))
    const storedOf = ({ events, position }: Page) => {
      const sent = frames.stored(events)
      frames.passed(position)
      return sent
    }
    const nextPage = Effect.suspend(() => {
      const read = ahead.pop()
      return read === undefined ? page(frames.position()) : Effect.succeed(read)
    })
    const sendPages: Effect.Effect<void, E | OpenStream.Lost> = Effect.flatMap(nextPage, (found) =>
      Effect.zipRight(
        write(() => storedOf(found)),
        found.hasMore ? sendPages : Effect.void
      )
    )
    const begin = Effect.gen(function* () {
      if (follow) hub = yield* Effect.mapError(acquire, lost)
      yield* sendPages
      yield* write(frames.seam)
    })
    const goOn = Effect.zipRight(stream.ready, sendPages)
    for (let step: Effect.Effect<void, E | OpenStream.Lost, Scope.Scope> = begin; ; step = goOn) {
      const isCut = yield* Effect.raceFirst(Effect.as(step, false), Effect.as(Deferred.await(cut), true))
      if (isCut) return last("draining")
      if (hub === undefined) return last("complete")
      yield* Effect.mapError(attached(hub, frames, open, bell), (error) =>
        error instanceof OpenStream.Lost ? error : lost(error)
      )
    }
  })

/** The last frame of a stream that outlived its token. */
const outlived: Last = {
  reason: "unauthorized",
  error: Schema.encodeSync(failures(Unauthorized))(new Unauthorized())
}

/** Ends the work when the token ends. */
const within = <E, R>(work: Effect.Effect<Last, E, R>, expires: number): Effect.Effect<Last, E, R> =>
  Effect.raceFirst(work, Effect.as(until(expires), outlived))

const make = Effect.gen(function* () {
  const encodings = { sse: OpenStream.sse(), ndjson: OpenStream.ndjson() }
  const streams = new Set<Open>()
  const joins = makeJoins()
  const { begun, start } = yield* Drain
  const log = yield* EventLog

  yield* Effect.sync(() => {
    for (const { stream } of streams) stream.beat()
  }).pipe(Effect.schedule(Schedule.spaced(heartbeatEvery)), Effect.forkScoped)
  yield* Effect.forkScoped(
    Effect.zipRight(
      Deferred.await(start),
      Effect.forEach(streams, (each) => Effect.sync(() => drain(each)), { discard: true })
    )
  )

  /** Writes a stream until it ends. Calls `begins` once the response has begun. */
  const write = <E, F>(
    response: ServerResponse,
    accept: string | undefined,
    source: Source<E, F>,
    begins: () => void
  ): Effect.Effect<void, E> =>
    Effect.gen(function* () {
      const encoding = accept?.includes("ndjson") === true ? encodings.ndjson : encodings.sse
      const heard = source.live !== undefined && source.follow ? yield* hearing(log, source.live, joins) : undefined
      // Before the response begins: a source that cannot be read is a status, not a stream.
      const ahead = [yield* source.page(source.start)]
      const stream = yield* OpenStream.open(response, encoding)
      // No frame could follow, and no heartbeat would show that the client has gone.
      if (response.req.method === "HEAD") return yield* stream.end(Buffer.alloc(0))
      const frames = framesOf(source, encoding, heard?.deltas)
      const lastFrame = (frame: Last) => encoding.end({ ...frame, cursor: frames.cursor() })
      const cut = yield* Deferred.make<void>()
      const open: Open = { stream, last: () => lastFrame(last("draining")), finish: undefined, cut, isCut: false }
      yield* Effect.acquireRelease(
        Effect.sync(() => streams.add(open)),
        () => Effect.sync(() => streams.delete(open))
      )
      begins()
      if (yield* begun) drain(open)
      const work = send(source, ahead, frames, open, heard?.bell)
      const outcome = yield* Effect.either(source.expires === undefined ? work : within(work, source.expires))
      const end = (frame: Last) => stream.end(lastFrame(frame))
      if (Either.isRight(outcome)) yield* end(outcome.right)
      else if (!(outcome.left instanceof OpenStream.Lost)) yield* end(source.failed(outcome.left))
    }).pipe(scoped)

  /** Without the services, and the frames, of the application that answers requests: a stream would keep them as long as it follows. */
  const fork = Runtime.runFork(Runtime.make({ ...(yield* Effect.runtime<never>()), context: Context.empty() }))

  const serve = <E, F>(response: ServerResponse, accept: string | undefined, source: Source<E, F>) =>
    Effect.async<void, E>((resume) => {
      /** Undefined: the fiber of the request has gone on. */
      let asked: typeof resume | undefined = resume
      const answer = (exit: Exit.Exit<void, E>) => {
        asked?.(exit)
        asked = undefined
      }
      const fiber = fork(write(response, accept, source, () => answer(Exit.void)))
      fiber.addObserver((exit) => {
        if (asked !== undefined) answer(exit)
        else if (Exit.isFailure(exit) && !Cause.isInterruptedOnly(exit.cause))
          fork(Effect.logError("A stream failed", exit.cause))
      })
      untilLeft(response, fiber)
      return Fiber.interrupt(fiber)
    })

  return Streams.of({ serve })
})

/** No stream is open at first. */
export const layer = Layer.scoped(Streams, make)
