/**
 * A Unix socket that only its owner can reach, and a connection for each client. Stub.
 */
import { Effect, Schema, type Scope } from "effect"
import type { Connection } from "./Connection.ts"

/** Somebody else answers at the path. */
export class SocketBusy extends Schema.TaggedError<SocketBusy>()("SocketBusy", {
  path: Schema.String,
  message: Schema.String
}) {}

/** No socket can be made at the path; the message says why and what to do. */
export class SocketUnusable extends Schema.TaggedError<SocketUnusable>()("SocketUnusable", {
  path: Schema.String,
  message: Schema.String
}) {}

export interface ListenOptions {
  /** The layout's root, as an absolute host path. */
  readonly root: string
  /** The socket below it, such as `agent/coder.sock`. */
  readonly name: string
  /** How many clients at once; beyond it they are told EBUSY. 256 by default. */
  readonly maxConnections?: number
}

export interface Listener {
  /** The host path of the socket. */
  readonly path: string
  /** How many clients are connected now. */
  readonly connections: Effect.Effect<number>
}

/**
 * Listens for as long as the scope lasts. Each client's connection is handed to `handle` in a fiber of its own, and
 * closed when that ends; the end of the scope interrupts those that go on.
 */
export const listen: <R>(
  options: ListenOptions,
  handle: (connection: Connection) => Effect.Effect<void, never, R>
) => Effect.Effect<Listener, SocketBusy | SocketUnusable, Scope.Scope | R> = Effect.fn("Listener.listen")(
  function* (options) {
    return yield* new SocketUnusable({ path: options.root, message: "not yet" })
  }
)
