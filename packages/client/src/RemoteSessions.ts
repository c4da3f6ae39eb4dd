/**
 * The facade itself over a client, for programs that know only `Sessions`. `Sessions` has no errors of a connection, so
 * these errors are defects here: such a program can only end with their message. Spec: HT-64 in specs/http.md.
 */
import { Effect, Layer, Predicate, Record, Schema, Stream } from "effect"
import { Sessions } from "@daybook/core/session/Sessions"
import type { From } from "@daybook/log/log/EventLog"
import { ConnectionError } from "./ClientError.ts"
import { DaybookClient } from "./DaybookClient.ts"
import { isOfFacade, plain } from "./Streams.ts"

const isConnectionError = Schema.is(ConnectionError)

/** The errors of a connection that no verb has itself. */
export type LostConnection = Exclude<ConnectionError, { readonly _tag: "InvalidInput" }>

/** Whether an error is one of the connection. An invalid argument is not: verbs have that error themselves. */
export const isLost = (error: unknown): error is LostConnection =>
  isConnectionError(error) && error._tag !== "InvalidInput"

const isStream = (value: unknown): value is Stream.Stream<unknown, unknown> =>
  Predicate.hasProperty(value, Stream.StreamTypeId)

const isEffect = (value: unknown): value is Effect.Effect<unknown, unknown> => Effect.isEffect(value)

const dying = (result: unknown): unknown => {
  // An error is an effect, and looks like a stream too.
  if (isEffect(result))
    return Effect.catchAll(result, (error) => (isLost(error) ? Effect.die(error) : Effect.fail(error)))
  if (isStream(result))
    return Stream.catchAll(result, (error) => (isLost(error) ? Stream.die(error) : Stream.fail(error)))
  return result
}

const local = (verb: unknown): unknown =>
  Predicate.isFunction(verb) && !isEffect(verb) ? (...given: Array<unknown>) => dying(verb(...given)) : dying(verb)

export const layer: Layer.Layer<Sessions, never, DaybookClient> = Layer.effect(
  Sessions,
  // Each verb keeps its name, its arguments and its result, and loses only errors: the client's type says so, verb by verb.
  // `follow` of a client has the cursors of the server.
  Effect.map(DaybookClient, (client) => {
    const follow = (options: From) => Stream.filter(plain(client.follow, options, true), isOfFacade)
    return Record.map({ ...client, follow }, local) as unknown as Sessions["Type"]
  })
)
