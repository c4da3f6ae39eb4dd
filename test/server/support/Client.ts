/** A plain client of a Unix socket: it writes bytes and reads lines. */
import { connect, type Socket } from "node:net"
import { Deferred, Effect, Option, Queue, Stream, type Scope } from "effect"
import { waitingFor } from "../../support/Waiting.ts"

export interface Client {
  readonly socket: Socket
  /** Writes the bytes, or buffers them until the system accepts them. */
  readonly send: (text: string | Uint8Array) => Effect.Effect<void>
  /** Stops sending and keeps reading. */
  readonly end: Effect.Effect<void>
  /** Disconnects immediately. */
  readonly destroy: Effect.Effect<void>
  /** The next line as JSON; the client's end, or the server's, is a defect here. */
  readonly next: Effect.Effect<unknown>
  /** The remaining lines, until the server ends the connection. */
  readonly rest: Effect.Effect<ReadonlyArray<unknown>>
  readonly closed: Effect.Effect<void>
}

export const connectTo = (path: string): Effect.Effect<Client, Error, Scope.Scope> =>
  Effect.gen(function* () {
    const lines = yield* Queue.unbounded<Option.Option<string>>()
    const closed = yield* Deferred.make<void>()
    const socket = yield* Effect.acquireRelease(
      Effect.async<Socket, Error>((resume) => {
        const socket = connect({ path, allowHalfOpen: true })
        socket.once("error", (error) => resume(Effect.fail(error)))
        socket.once("connect", () => resume(Effect.succeed(socket)))
      }),
      (socket) => Effect.sync(() => socket.destroy())
    )
    let begun = ""
    socket.setEncoding("utf8")
    socket.on("data", (text: string) => {
      const parts = (begun + text).split("\n")
      begun = parts.pop() ?? ""
      for (const part of parts) Queue.unsafeOffer(lines, Option.some(part))
    })
    socket.on("end", () => Queue.unsafeOffer(lines, Option.none()))
    socket.on("error", () => {})
    socket.once("close", () => {
      Queue.unsafeOffer(lines, Option.none())
      Deferred.unsafeDone(closed, Effect.void)
    })
    const parse = (line: string): unknown => JSON.parse(line)
    return {
      socket,
      send: (text) => Effect.sync(() => void socket.write(text)),
      end: Effect.sync(() => void socket.end()),
      destroy: Effect.sync(() => void socket.destroy()),
      next: Queue.take(lines).pipe(
        waitingFor("a line of the server"),
        Effect.flatMap(Effect.orElse(() => Effect.dieMessage("the server has ended the connection"))),
        Effect.map(parse)
      ),
      rest: Stream.fromQueue(lines).pipe(
        Stream.takeWhile(Option.isSome),
        Stream.map((line) => parse(line.value)),
        Stream.runCollect,
        Effect.map((all) => [...all])
      ),
      closed: Deferred.await(closed)
    }
  })
