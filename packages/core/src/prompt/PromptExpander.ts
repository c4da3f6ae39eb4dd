/**
 * What a prompt points at, resolved before it is admitted: the expansion is stored with the prompt and replayed as it
 * was. It never fails: what cannot be had becomes a part that tells the model why. Spec: PX-1.. in specs/context.md.
 */
import { Context, Effect, Layer } from "effect"
import type { Session } from "../session/Message.ts"
import type { Expansion, PromptInput } from "../session/Schemas.ts"

export class PromptExpander extends Context.Tag("@daybook/core/PromptExpander")<
  PromptExpander,
  {
    /** Undefined when the prompt points at nothing. */
    readonly expand: (session: Session, prompt: PromptInput) => Effect.Effect<Expansion | undefined>
  }
>() {}

/** Prompts stay as they are given. */
export const layerNone = Layer.succeed(PromptExpander, { expand: () => Effect.succeed(undefined) })
