/** Defines what requests to providers spent. Spec: TO-106. */
import { Schema } from "effect"
import { Tokens } from "./Values.ts"

/** Cost of provider requests in US dollars, and their tokens. */
export const Usage = Schema.Struct({ cost: Schema.Finite, tokens: Tokens })
export type Usage = typeof Usage.Type

/** What a session did itself, without its children. A fork counts from the fork on. */
export const SessionMetrics = Schema.Struct({
  ...Usage.fields,
  /** Provider requests that ended, successfully or not. */
  turns: Schema.Int,
  toolCalls: Schema.Int,
  /** Milliseconds of its activities, the running one included. */
  durationMs: Schema.Int
})
export type SessionMetrics = typeof SessionMetrics.Type

/** The part of the usage that is estimated, not counted by providers: US dollars, and tokens of input and output. */
export const Estimated = Schema.Struct({ cost: Schema.Finite, tokens: Schema.Finite })
export type Estimated = typeof Estimated.Type
