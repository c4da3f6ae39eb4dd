/**
 * What one stream of a command becomes: bytes to text, without terminal sequences, without secrets; the whole of it goes
 * to a sink, a budget's share to the caller. Bounded memory, linear time. Spec: SL-30, SL-45.
 */
import * as Escapes from "./Escapes.ts"
import * as LineBudget from "./LineBudget.ts"
import * as RedactionStream from "./RedactionStream.ts"
import * as Utf8Text from "./Utf8Text.ts"

export interface OutputPipelineOptions {
  readonly budget: LineBudget.CompiledBudget
  readonly secrets: RedactionStream.Secrets
  /** Receives all redacted text, in order; also newlines at the end. Called within `add` and `end`. */
  readonly onText?: (text: string) => void
}

export interface OutputPipeline {
  readonly add: (bytes: Uint8Array) => void
  /** Call once, after the last bytes. */
  readonly end: () => LineBudget.Shaped
}

export const make = ({ budget, onText, secrets }: OutputPipelineOptions): OutputPipeline => {
  const decoder = Utf8Text.make()
  const escapes = Escapes.make()
  const redaction = RedactionStream.make(secrets)
  const lines = LineBudget.make(budget)
  const take = (text: string): void => {
    if (text === "") return
    onText?.(text)
    lines.add(text)
  }
  return {
    add: (bytes) => take(redaction.add(escapes.add(decoder.add(bytes)))),
    end: () => {
      take(redaction.add(escapes.add(decoder.end()) + escapes.end()))
      take(redaction.end())
      return lines.end()
    }
  }
}
