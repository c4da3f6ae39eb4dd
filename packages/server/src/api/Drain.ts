/** The end of a server as its requests see it. Spec: HT-52 in specs/http.md. */
import { Context, Deferred, Effect, Layer } from "effect"

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
export const layer = Layer.effect(
  Drain,
  Effect.map(Deferred.make<void>(), (start) => ({
    begin: Effect.asVoid(Deferred.succeed(start, undefined)),
    begun: Deferred.isDone(start),
    start
  }))
)
