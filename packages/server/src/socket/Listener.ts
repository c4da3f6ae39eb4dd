/** Listens on a Unix socket and makes a connection for each client, up to a limit. Spec: SO-60..SO-77. */
import { createServer, type Server, type Socket } from "node:net"
import {
  Cause,
  Chunk,
  Deferred,
  Effect,
  Exit,
  FiberId,
  FiberSet,
  Option,
  Schedule,
  Schema,
  type Scope,
  Stream
} from "effect"
import * as Count from "../shared/Count.ts"
import { type Line, make as makeSplitter } from "./Request.ts"
import { clear, type SocketPlace, prepare, publish, SocketBusy, SocketUnusable, unpublish } from "./SocketPath.ts"
import { encodeFrame, errorFrame } from "./Wire.ts"

// One client: lines in, text out, at the pace of the slower side. While no line is taken, the server reads only what the
// socket buffers. One text is written at a time; other writers wait in order.
//
//   open --client ends its side--> half open (still answered) --client gone | finish--> closed
//
// A reader cannot distinguish a client that is gone from one that ended its side. An empty write can: it fails if the
// client no longer reads.

/** The client is gone, or the connection is finished: a write does not reach the client. */
export class ConnectionClosed extends Schema.TaggedError<ConnectionClosed>()("ConnectionClosed", {
  message: Schema.String
}) {}

export interface Connection {
  /** The number of the connection within its listener, from 1. */
  readonly id: number
  /** The client's lines, read on demand; ends when the client ends its side. Run it once. */
  readonly lines: Stream.Stream<Line>
  /**
   * Writes the whole text after earlier writes; completes when the system has taken it. An interrupted write that still
   * waits writes nothing; a write in progress is completed.
   */
  readonly write: (text: string) => Effect.Effect<void, ConnectionClosed>
  /** Whether the client may send more, that is, has not ended its side. */
  readonly sendsMore: () => boolean
  /** Completes when the client ends its side or is gone. */
  readonly ended: Effect.Effect<void>
  /** Completes when the client is gone or the connection is closed, even while nothing is read or written. */
  readonly closed: Effect.Effect<void>
  /** Completes pending writes and then ends the server's side; gives up after five seconds. */
  readonly finish: Effect.Effect<void>
}

/** How often a half-open client is probed. */
const probeEvery = "1 second"
const finishWithin = "5 seconds"

const gone = () => new ConnectionClosed({ message: "the connection is closed" })

/** A text to write, or the end of writing (undefined). */
type Job = { readonly text: string | undefined; readonly settle: (written: boolean) => void }

/** Writes the texts of one socket one at a time, so that its buffer never holds more than one. */
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

  /** Fails all pending writes: a closed socket calls back no more. */
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

const makeReader = (socket: Socket, ended: Deferred.Deferred<void>) => {
  const splitter = makeSplitter()
  let wake: (() => void) | undefined
  let over = false

  const signal = (): void => {
    const waiting = wake
    wake = undefined
    waiting?.()
  }

  /** The available lines; undefined if more bytes are needed, empty at the end. */
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
        // A destroyed socket leaves its begun line unanswered.
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

/** A connection over a half-open socket; the end of the scope closes it immediately. */
export const makeConnection: (socket: Socket, id: number) => Effect.Effect<Connection, never, Scope.Scope> =
  Effect.fnUntraced(function* (socket, id) {
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
        // An error always closes the socket, and every wait here is for that.
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
  })

export { SocketBusy, SocketUnusable }

/** Where to listen, and for how many clients. */
export interface ListenOptions extends SocketPlace {
  readonly maxConnections?: number
}

export interface Listener {
  readonly path: string
  readonly connections: Effect.Effect<number>
  readonly idle: Effect.Effect<void>
}

const defaultMaxConnections = 256
const readAhead = 65_536
/** Milliseconds for a rejected client to read the reason and close its side. */
const turnAwayMs = 1000

const full = encodeFrame(
  errorFrame({ code: "EBUSY", message: "too many clients are connected here: try again when one has gone" })
)

const broken = encodeFrame(
  errorFrame({ code: "EIO", message: "an internal error ended this connection; it is in the server's log" })
)
const lastWords = "1 second"

/** Writes the rejection if the client still reads, and closes the connection. */
const turnAway = (socket: Socket): void => {
  const timer = setTimeout(() => socket.destroy(), turnAwayMs)
  socket.once("close", () => clearTimeout(timer))
  socket.resume()
  socket.end(full)
}

/** Binds the server at a temporary path and publishes it; the end of the scope removes it. */
const bind = (
  server: Server,
  { path, temporary }: { readonly path: string; readonly temporary: string },
  place: SocketPlace
) =>
  Effect.acquireRelease(
    Effect.gen(function* () {
      yield* clear(path)
      yield* Effect.async<void, SocketUnusable>((resume) => {
        const failed = (cause: Error) =>
          resume(new SocketUnusable({ path, message: `${path}: cannot listen there: ${cause.message}` }))
        server.once("error", failed)
        server.listen({ path: temporary }, () => {
          server.off("error", failed)
          resume(Effect.void)
        })
      })
      return yield* publish(temporary, path, place).pipe(Effect.onError(() => Effect.sync(() => server.close())))
    }),
    (published) =>
      Effect.zipRight(
        unpublish(path, published),
        Effect.sync(() => server.close())
      )
  )

/** Listens until the scope closes. Each connection has a fiber, and is finished when `handle` ends. */
export const listen: <R>(
  options: ListenOptions,
  handle: (connection: Connection) => Effect.Effect<void, never, R>
) => Effect.Effect<Listener, SocketBusy | SocketUnusable, Scope.Scope | R> = Effect.fn("Listener.listen")(function* <R>(
  options: ListenOptions,
  handle: (connection: Connection) => Effect.Effect<void, never, R>
) {
  const max = options.maxConnections ?? defaultMaxConnections
  const prepared = yield* prepare(options)
  const { path } = prepared
  const run = yield* FiberSet.makeRuntime<R, void, never>()
  const connected = Count.make()
  let accepted = 0

  const attend = (socket: Socket, id: number) =>
    Effect.scoped(
      Effect.flatMap(makeConnection(socket, id), (connection) =>
        handle(connection).pipe(
          Effect.catchAllCause((cause) =>
            Cause.isInterruptedOnly(cause)
              ? Effect.failCause(cause)
              : Effect.zipRight(
                  Effect.logError("A client's connection failed", cause),
                  Effect.ignore(Effect.timeout(connection.write(broken), lastWords))
                )
          ),
          Effect.zipRight(connection.finish)
        )
      )
    ).pipe(
      Effect.catchAllCause(() => Effect.void),
      Effect.ensuring(Effect.sync(connected.end))
    )

  const server = createServer({ allowHalfOpen: true, highWaterMark: readAhead }, (socket) => {
    // Immediately: an unhandled error event would end the process.
    socket.on("error", () => {})
    if (connected.now() >= max) return turnAway(socket)
    connected.begin()
    run(attend(socket, ++accepted))
  })
  // A client that cannot be accepted for lack of descriptors stays in the backlog.
  server.on("error", () => {})
  yield* bind(server, prepared, options)
  return { path, connections: Effect.sync(connected.now), idle: connected.none }
})
