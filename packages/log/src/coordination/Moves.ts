/**
 * Hints between the processes of a database: a session was handed over, or a node came, left or took shards. A hint can be
 * lost, so a listener also looks at intervals. PostgreSQL carries them; a database in a file has none.
 * Spec: EX-824 in specs/execution.md, CU-39 in specs/scale.md.
 */
import { Context, Effect, PubSub, Stream } from "effect"

export interface Service {
  /** Tells all processes of the database, this one included. */
  readonly tell: Effect.Effect<void>
  /** The hints. Those that arrive while one is handled are joined into one. */
  readonly told: Stream.Stream<void>
}

/** Hints that `send` carries, and that reach this process through `hear`. */
export const make = (send: Effect.Effect<unknown, unknown>) =>
  Effect.map(PubSub.sliding<void>(1), (heard) => ({
    tell: Effect.ignore(send),
    told: Stream.fromPubSub(heard),
    hear: () => void heard.unsafeOffer(undefined)
  }))

export class Moves extends Context.Reference<Moves>()("@daybook/log/Moves", {
  defaultValue: (): Service => ({ tell: Effect.void, told: Stream.never })
}) {}
