/** Asks a host of live shells over its socket. An ended connection is `HostLost`. Spec: SL-172, SL-173. */
import * as NodeSocket from "@effect/platform-node/NodeSocket"
import * as RpcClient from "@effect/rpc/RpcClient"
import type { RpcClientError } from "@effect/rpc/RpcClientError"
import { Cause, Effect, Layer, Option, Predicate, Schedule, Schema, Stream } from "effect"
import * as HostProtocol from "./HostProtocol.ts"
import { type CreateRequest, type ExecRequest, ShellRpcs } from "./HostProtocol.ts"

/** No host answers at the path. */
export class HostAbsent extends Schema.TaggedError<HostAbsent>("@daybook/shell/HostAbsent")("HostAbsent", {
  path: Schema.String
}) {
  override get message() {
    return "no live shell is open: daybook shell create opens one"
  }
}

/** Something listens at the path that cannot be used; the message says what to do. */
export class HostUnusable extends Schema.TaggedError<HostUnusable>("@daybook/shell/HostUnusable")("HostUnusable", {
  path: Schema.String,
  /** `closed`: it ends the connection. It ends itself, or has too many. `silent`: it does not answer. */
  reason: Schema.Literal("closed", "silent", "no host", "no connection"),
  details: Schema.String
}) {
  override get message() {
    return `${this.path}: ${this.details}`
  }
}

/** The host ended during a call, and its shells with it. */
export class HostLost extends Schema.TaggedError<HostLost>("@daybook/shell/HostLost")("HostLost", {
  details: Schema.String
}) {
  override get message() {
    return `the host of the shells is gone: ${this.details}`
  }
}

/** How long a host may take to say what it is. */
const helloWithin = "5 seconds"

/** The system's code of an error, within the errors of the libraries. */
const codeOf = (error: unknown): string | undefined => {
  if (!Predicate.isRecord(error) && !(error instanceof Error)) return undefined
  if (Predicate.hasProperty(error, "code") && typeof error.code === "string") return error.code
  return Predicate.hasProperty(error, "cause") ? codeOf(error.cause) : undefined
}

/** Whether the other side has closed the connection. */
const isClosed = (error: unknown): boolean =>
  Predicate.hasProperty(error, "cause") &&
  Predicate.isTagged(error.cause, "SocketError") &&
  Predicate.hasProperty(error.cause, "reason") &&
  error.cause.reason === "Close"

type CallError<E> = Exclude<E, RpcClientError> | HostLost

const isOwn = <E>(error: E): error is Exclude<E, RpcClientError> => !Predicate.isTagged(error, "RpcClientError")

/** The error of a call, or `HostLost`: the connection failed, the host interrupted the call, or the answer is none. */
const settled = <E>(cause: Cause.Cause<E>): Cause.Cause<CallError<E>> => {
  const failure = Cause.failureOption(cause)
  if (Option.isSome(failure) && isOwn(failure.value)) return Cause.fail(failure.value)
  const defect = Cause.dieOption(cause)
  // A write that fails is a defect of the library.
  const details =
    Option.isSome(failure) || codeOf(Option.getOrUndefined(defect)) !== undefined
      ? "the connection ended"
      : Option.isSome(defect)
        ? `internal error: ${String(defect.value)}`
        : "it ended the call"
  return Cause.fail(new HostLost({ details }))
}

const call = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, CallError<E>, R> =>
  Effect.catchAllCause(effect, (cause) => Effect.failCause(settled(cause)))

/** Connects, and asks the host what it is. The end of the scope ends the connection. */
export const connect = Effect.fn("HostClient.connect")(function* (path: string) {
  const unusable = (reason: HostUnusable["reason"], details: string) => new HostUnusable({ path, reason, details })
  const protocol = RpcClient.layerProtocolSocket({ retrySchedule: Schedule.stop }).pipe(
    Layer.provide(Layer.merge(HostProtocol.layerClient, NodeSocket.layerNet({ path }))),
    Layer.orDie
  )
  const client = yield* Effect.provide(
    RpcClient.make(ShellRpcs, { disableTracing: true }),
    yield* Layer.build(protocol)
  )
  /** What a failure of the first call says of the path. */
  const refused = (cause: Cause.Cause<RpcClientError>): HostAbsent | HostUnusable => {
    const error = Cause.squash(cause)
    const code = codeOf(error)
    if (code === "ENOENT" || code === "ECONNREFUSED") return new HostAbsent({ path })
    if (code === "ECONNRESET" || code === "EPIPE" || isClosed(error)) {
      return unusable("closed", "it closes the connection: it is ending, or has too many")
    }
    return code === undefined
      ? unusable("no host", "what answers there is no host of live shells")
      : unusable("no connection", `no connection (${code})`)
  }
  const hello = yield* client.hello().pipe(
    Effect.catchAllCause((cause) => Effect.fail(refused(cause))),
    Effect.timeoutFail({
      duration: helloWithin,
      onTimeout: () =>
        unusable("silent", "the host of the shells does not answer: end that process, and its shells with it")
    })
  )
  return {
    hello,
    create: (request: CreateRequest) => call(client.create(request)),
    /** Its interruption stops the command. */
    exec: (request: ExecRequest) =>
      Stream.catchAllCause(client.exec(request), (cause) => Stream.failCause(settled(cause))),
    stop: (id: string) => call(client.stop({ call: id })),
    input: (id: string, text: string, end: boolean) => call(client.input({ call: id, text, end })),
    list: call(client.list()),
    destroy: (id: string) => call(client.destroy({ id })),
    checkpoint: (id: string, label: string | undefined) =>
      call(client.checkpoint({ id, ...(label === undefined ? {} : { label }) })),
    checkpoints: (id: string) => call(client.checkpoints({ id })),
    restore: (id: string, checkpointID: string | undefined) =>
      call(client.restore({ id, ...(checkpointID === undefined ? {} : { checkpointID }) }))
  }
})

export type HostClient = Effect.Effect.Success<ReturnType<typeof connect>>
