/**
 * The turn's question whether history must be compacted before the request goes out. This implementation never does:
 * a session that outgrows its model's window fails its turn with the provider's own overflow error.
 */
import { Context, Effect, Layer } from "effect"
import type { SessionID } from "../Identifiers.ts"
import type { ModelInfo } from "../model/ModelResolver.ts"

export interface CompactionRequest {
  readonly sessionID: SessionID
  readonly info: ModelInfo
  /** Characters of the whole model-visible request: system, messages and tools. */
  readonly requestChars: () => number
}

export class Compaction extends Context.Tag("@daybook/core/Compaction")<
  Compaction,
  {
    /** True after a completed compaction: the turn is assembled anew, without a second promotion (CM-9). */
    readonly compactIfNeeded: (request: CompactionRequest) => Effect.Effect<boolean>
    /** The same after the provider refused the request as too long (CM-10). */
    readonly compactAfterOverflow: (request: CompactionRequest) => Effect.Effect<boolean>
  }
>() {}

/** Never compacts. */
export const layerNone = Layer.succeed(Compaction, {
  compactIfNeeded: () => Effect.succeed(false),
  compactAfterOverflow: () => Effect.succeed(false)
})
