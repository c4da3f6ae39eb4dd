/**
 * One client: lines in, text out, both at the pace of the slower side. Stub.
 */
import type { Socket } from "node:net"
import { Effect, Schema, Stream, type Scope } from "effect"
import type { Line } from "./Lines.ts"

/** The client is gone: nothing that is written reaches it. */
export class ConnectionClosed extends Schema.TaggedError<ConnectionClosed>()("ConnectionClosed", {
  message: Schema.String
}) {}

export interface Connection {
  /** Counts the connections of a listener, from 1. */
  readonly id: number
  /** What the client sends, read no faster than it is taken; ends when the client sends no more. To be run once. */
  readonly lines: Stream.Stream<Line>
  /** Writes the text whole, after those that were asked for before it; ends when the system has taken it. */
  readonly write: (text: string) => Effect.Effect<void, ConnectionClosed>
  /** Ends when the client is gone or the connection is closed, also while nobody reads or writes. */
  readonly closed: Effect.Effect<void>
  /** Nothing more is written: tells the client so, once what was written has been taken. */
  readonly finish: Effect.Effect<void>
}

/** A connection over a socket; the end of the scope closes it. */
export const make: (socket: Socket, id: number) => Effect.Effect<Connection, never, Scope.Scope> = Effect.fnUntraced(
  function* (_socket, id) {
    const closed = new ConnectionClosed({ message: "not yet" })
    yield* Effect.scope
    return { id, lines: Stream.empty, write: () => Effect.fail(closed), closed: Effect.void, finish: Effect.void }
  }
)
