/**
 * The client for programs without Effect: promises, async iterables, and errors with a `code`. Spec: HT-65 in
 * specs/http.md.
 *
 * @module @daybook/client/promise
 */
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import { type Brand, Cause, Effect, Exit, Predicate, Record, Stream } from "effect"
import * as Identifiers from "@daybook/log/domain/Identifiers"
import { InvalidInput } from "@daybook/log/domain/InvalidInput"
import * as Client from "./DaybookClient.ts"
import type { Streams } from "./Streams.ts"

export class DaybookError extends Error {
  override readonly name = "DaybookError"
  readonly code: string
  /** The fields of the error, such as `sessionID`. */
  readonly fields: Readonly<globalThis.Record<string, unknown>>

  constructor({ _tag, message, ...fields }: { readonly _tag: string; readonly message: string }) {
    super(message)
    this.code = _tag
    this.fields = fields
  }
}

export interface Options extends Client.Options {
  /** Ends every call and every stream; `with` gives one to some. */
  readonly signal?: AbortSignal | undefined
}

/** Ids are plain texts for callers. */
type Unbranded<A> =
  A extends Brand.Brand<string>
    ? Brand.Brand.Unbranded<A>
    : A extends object
      ? { readonly [Field in keyof A]: Unbranded<A[Field]> }
      : A

/** A verb with a promise or an async iterable as its result. */
export type Plain<Verb> = Verb extends (...given: infer Given) => Effect.Effect<infer A, infer _E>
  ? (...given: Extract<Unbranded<Given>, ReadonlyArray<unknown>>) => Promise<A>
  : Verb extends (...given: infer Given) => Stream.Stream<infer A, infer _E>
    ? (...given: Extract<Unbranded<Given>, ReadonlyArray<unknown>>) => AsyncIterable<A>
    : Verb extends Effect.Effect<infer A, infer _E>
      ? () => Promise<A>
      : never

type Service = Client.DaybookClient["Type"]

/** The verbs of `DaybookClient`. Each fails with a `DaybookError`, or with the reason of the signal. */
export type Daybook = { readonly [Name in keyof Service]: Plain<Service[Name]> } & {
  /** The same verbs, ended by this signal. */
  readonly with: (options: { readonly signal: AbortSignal }) => Daybook
}

const isFailure = (error: unknown): error is { readonly _tag: string; readonly message: string } =>
  Predicate.hasProperty(error, "_tag") && Predicate.hasProperty(error, "message")

const thrown = (error: unknown): unknown => (isFailure(error) ? new DaybookError(error) : error)

const promised = async (effect: Effect.Effect<unknown, unknown>, signal: AbortSignal | undefined): Promise<unknown> => {
  signal?.throwIfAborted()
  const exit = await Effect.runPromiseExit(effect, signal === undefined ? {} : { signal })
  if (Exit.isSuccess(exit)) return exit.value
  signal?.throwIfAborted()
  throw thrown(Cause.squash(exit.cause))
}

/** Fails with the reason of the signal when it comes. */
const aborted = (signal: AbortSignal): Effect.Effect<never, unknown> =>
  Effect.async((resume) => {
    const onAbort = () => resume(Effect.fail(signal.reason))
    if (signal.aborted) return onAbort()
    signal.addEventListener("abort", onAbort)
    return Effect.sync(() => signal.removeEventListener("abort", onAbort))
  })

const iterable = (stream: Stream.Stream<unknown, unknown>, signal: AbortSignal | undefined): AsyncIterable<unknown> =>
  Stream.toAsyncIterable(
    Stream.mapError(signal === undefined ? stream : Stream.interruptWhen(stream, aborted(signal)), thrown)
  )

/** The verbs that are streams. Their results cannot tell: an error is an effect and a stream at once. */
const streams: Readonly<globalThis.Record<Exclude<keyof Streams, "head">, true>> = {
  events: true,
  eventsMarked: true,
  feed: true,
  follow: true,
  live: true,
  tail: true
}

/** The verb's result. Only an argument of a wrong type makes the verb throw. */
const called = (name: string, verb: unknown, given: ReadonlyArray<unknown>): unknown => {
  if (!Predicate.isFunction(verb) || Effect.isEffect(verb)) return verb
  try {
    return verb(...given)
  } catch {
    const kinds = given.map((each) => (each === null ? "null" : typeof each)).join(", ")
    return new InvalidInput({ field: name, details: `the verb does not take the arguments (${kinds})` })
  }
}

const over = (client: Service, signal: AbortSignal | undefined): Daybook => {
  const plain =
    (verb: unknown, name: string) =>
    (...given: Array<unknown>): unknown => {
      const result = called(name, verb, given)
      return Object.hasOwn(streams, name)
        ? iterable(result as Stream.Stream<unknown, unknown>, signal)
        : promised(result as Effect.Effect<unknown, unknown>, signal)
    }
  const verbs = {
    ...Record.map({ ...client }, plain),
    with: (options: { readonly signal: AbortSignal }) =>
      over(client, signal === undefined ? options.signal : AbortSignal.any([signal, options.signal]))
  }
  // Each verb keeps its name and arguments; `Daybook` says verb by verb what becomes of its result.
  return verbs as unknown as Daybook
}

/** A client of a server. It holds no connection, so nothing needs to be closed. */
export const connect = ({ signal, ...options }: Options): Daybook => {
  const make = Effect.provide(Client.make(options), [FetchHttpClient.layer, Identifiers.layer])
  return over(Effect.runSync(make), signal)
}
