/**
 * One client: lines in, text out, both at the pace of the slower side. Reading goes no further ahead than the socket's
 * own buffer while nobody takes lines; writing keeps one text under way and lets everybody else wait, in order of
 * asking. What lines mean is `Wire.ts`; whose socket it is, `Listener.ts`. Spec: SO-60..SO-67 in specs/socket.md (FR-6).
 *
 *   open --client sends no more--> half open (still answered) --client gone | finish--> closed
 *
 * A client that is gone and one that only sends no more look the same to a reader. A write of no bytes tells them apart:
 * it fails when nobody can read any more.
 */
import type { Socket } from "node:net"
import { Chunk, Deferred, Effect, Exit, FiberId, Option, Schedule, Schema, Stream, type Scope } from "effect"
import { make as makeSplitter, type Line } from "./Lines.ts"

/** The client is gone, or was told that no more comes: nothing that is written reaches it. */
export class ConnectionClosed extends Schema.TaggedError<ConnectionClosed>()("ConnectionClosed", {
  message: Schema.String
}) {}

export interface Connection {
  /** Counts the connections of a listener, from 1. */
  readonly id: number
  /** What the client sends, read no faster than it is taken; ends when the client sends no more. To be run once. */
  readonly lines: Stream.Stream<Line>
  /**
   * Writes the text whole, after those that were asked for before it; ends when the system has taken it. Interrupted
   * while it waits, nothing is written; interrupted later, the text is still written whole.
   */
  readonly write: (text: string) => Effect.Effect<void, ConnectionClosed>
  /** Whether the client may send more: it has not ended its side. */
  readonly sendsMore: () => boolean
  /** Ends when the client has ended its side, or is gone. */
  readonly ended: Effect.Effect<void>
  /** Ends when the client is gone or the connection is closed, also while nobody reads or writes. */
  readonly closed: Effect.Effect<void>
  /** Tells the client that no more comes, once what was asked for has been written; gives up after five seconds. */
  readonly finish: Effect.Effect<void>
}

/** How often a client that sends no more is looked after while nothing is written to it. */
const probeEvery = "1 second"
const finishWithin = "5 seconds"

const gone = () => new ConnectionClosed({ message: "the connection is closed" })

/** A text on its way to the client, or the end of all texts. */
interface Job {
  readonly text: string | undefined
  readonly settle: (written: boolean) => void
}

/** The texts of one socket, one under way at a time: its own buffer never holds more than one. */
const makeWriter = (socket: Socket) => {
  const waiting: Array<Job> = []
  let underway: Job | undefined

  const settle = (job: Job, written: boolean): void => {
    if (underway !== job) return
    underway = undefined
    job.settle(written)
    next()
  }

  const next = (): void => {
    if (underway !== undefined) return
    const job = waiting.shift()
    if (job === undefined) return
    underway = job
    if (socket.destroyed || socket.writableEnded) settle(job, false)
    else if (job.text === undefined) socket.end(() => settle(job, true))
    else socket.write(job.text, "utf8", (error) => settle(job, !error && !socket.destroyed))
  }

  /** The socket tells nothing more of what it was given. */
  const close = (): void => {
    for (const job of waiting.splice(0)) job.settle(false)
    if (underway !== undefined) settle(underway, false)
  }

  const add = (text: string | undefined): Effect.Effect<void, ConnectionClosed> =>
    Effect.async((resume) => {
      const job: Job = { text, settle: (written) => resume(written ? Effect.void : Effect.fail(gone())) }
      waiting.push(job)
      next()
      return Effect.sync(() => {
        const at = waiting.indexOf(job)
        if (at !== -1) waiting.splice(at, 1)
      })
    })

  const probe = Effect.sync(() => {
    if (underway === undefined && !socket.destroyed && !socket.writableEnded) socket.write("")
  })

  return { add, close, probe }
}

/** The lines of one socket, and a signal for the end of them. */
const makeReader = (socket: Socket, ended: Deferred.Deferred<void>) => {
  const splitter = makeSplitter()
  let wake: (() => void) | undefined
  let over = false

  const signal = (): void => {
    const waiting = wake
    wake = undefined
    waiting?.()
  }

  /** The lines that are here, `undefined` when more bytes are needed; none is the end. */
  const available = (): ReadonlyArray<Line> | undefined => {
    for (;;) {
      const bytes: unknown = socket.read()
      if (bytes instanceof Uint8Array) {
        const lines = splitter.push(bytes)
        if (lines.length > 0) return lines
      } else if (!socket.readableEnded && !socket.destroyed) return undefined
      else if (over) return []
      else {
        over = true
        // A line that its client did not live to finish is none.
        return socket.readableEnded ? splitter.end() : []
      }
    }
  }

  const pull = Effect.async<Chunk.Chunk<Line>, Option.Option<never>>((resume) => {
    const attempt = (): void => {
      const lines = available()
      if (lines === undefined) wake = attempt
      else resume(lines.length > 0 ? Effect.succeed(Chunk.unsafeFromArray(lines)) : Effect.fail(Option.none()))
    }
    attempt()
    return Effect.sync(() => {
      wake = undefined
    })
  })

  socket.on("readable", signal)
  socket.on("end", () => {
    Deferred.unsafeDone(ended, Exit.void)
    signal()
  })
  return { lines: Stream.repeatEffectChunkOption(pull), signal }
}

/** A connection over a socket that allows half of it to be open; the end of the scope closes it at once. */
export const make: (socket: Socket, id: number) => Effect.Effect<Connection, never, Scope.Scope> = Effect.fnUntraced(
  function* (socket, id) {
    const closed = Deferred.unsafeMake<void>(FiberId.none)
    const ended = Deferred.unsafeMake<void>(FiberId.none)
    const writer = makeWriter(socket)
    const reader = makeReader(socket, ended)
    const close = (): void => {
      writer.close()
      Deferred.unsafeDone(closed, Exit.void)
      reader.signal()
    }
    yield* Effect.acquireRelease(
      Effect.sync(() => {
        // A fault of the socket always closes it, and that is what everybody here waits for.
        socket.on("error", () => {})
        socket.once("close", close)
        if (socket.closed) close()
      }),
      () =>
        Effect.zipRight(
          Effect.sync(() => socket.destroy()),
          Deferred.await(closed)
        )
    )
    yield* Deferred.await(ended).pipe(
      Effect.zipRight(Effect.repeat(writer.probe, Schedule.spaced(probeEvery))),
      Effect.forkScoped
    )
    return {
      id,
      lines: reader.lines,
      write: writer.add,
      sendsMore: () => !socket.readableEnded && !socket.destroyed,
      ended: Effect.raceFirst(Deferred.await(ended), Deferred.await(closed)),
      closed: Deferred.await(closed),
      finish: Effect.ignore(Effect.timeout(writer.add(undefined), finishWithin))
    }
  }
)
