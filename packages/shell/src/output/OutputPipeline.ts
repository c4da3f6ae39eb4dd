/**
 * What one stream of a command becomes: bytes to text, without terminal sequences, without secrets; the whole of it
 * goes to a sink, a budget's share to the caller. Bounded memory, linear time. Spec: SL-30, SL-39, SL-43, SL-45 in
 * specs/shell.md.
 */
import * as Escapes from "./Escapes.ts"
import * as LineBudget from "./LineBudget.ts"
import * as RedactionStream from "./RedactionStream.ts"

/** What a silent stream becomes. */
export const silent: LineBudget.ShapedOutput = {
  text: "",
  truncated: false,
  report: { lines_total: 0, lines_kept: 0, characters_total: 0, characters_kept: 0 }
}

interface OutputPipelineOptions {
  readonly budget: LineBudget.CompiledBudget
  readonly secrets: RedactionStream.Secrets
  /** Receives all redacted text, in order; also newlines at the end. Called within `add` and `end`. */
  readonly onText?: (text: string) => void
}

export interface OutputPipeline {
  readonly add: (bytes: Uint8Array) => void
  /** Call once, after the last bytes. */
  readonly end: () => LineBudget.ShapedOutput
}

/** What everybody may read of a stream: its text, without terminal sequences and secrets. */
export const makeClean = (secrets: RedactionStream.Secrets) => {
  const decoder = Escapes.makeUtf8Text()
  const escapes = Escapes.makeEscapes()
  const redaction = RedactionStream.make(secrets)
  return {
    add: (bytes: Uint8Array) => redaction.add(escapes.add(decoder.add(bytes))),
    /** Call once, after the last bytes. */
    end: () => redaction.add(escapes.add(decoder.end()) + escapes.end()) + redaction.end()
  }
}

export const make = ({ budget, onText, secrets }: OutputPipelineOptions): OutputPipeline => {
  const clean = makeClean(secrets)
  const lines = LineBudget.make(budget)
  const take = (text: string): void => {
    if (text === "") return
    onText?.(text)
    lines.add(text)
  }
  return {
    add: (bytes) => take(clean.add(bytes)),
    end: () => {
      take(clean.end())
      return lines.end()
    }
  }
}
