/**
 * Hints between the processes of a database: a session was handed over, or a node came, left or took shards. A hint can be
 * lost, so who listens also looks at intervals. PostgreSQL carries them. A process of a file hears none.
 * Spec: EX-824 in specs/execution.md, CU-39 in specs/scale.md.
 */
import { Context, Effect, PubSub, Stream } from "effect"

export interface Service {
  /** Tells all processes of the database, this one included. */
  readonly tell: Effect.Effect<void>
  /** What they tell. Hints that come while one is handled are one. */
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
