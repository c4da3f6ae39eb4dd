/**
 * What one stream of a command becomes: bytes to text, without terminal sequences, without secrets; the whole of it
 * goes to a sink, a budget's share to the caller. Bounded memory, linear time. Spec: SL-30, SL-39, SL-43, SL-45 in
 * specs/shell.md.
 */
import * as Escapes from "./Escapes.ts"
import * as LineBudget from "./LineBudget.ts"
import type { CompiledBudget, Shaped } from "./LineBudget.ts"
import * as RedactionStream from "./RedactionStream.ts"
import type { Secrets } from "./RedactionStream.ts"

// Shapes a short output without the pipeline, whose stages would cost more than the command.

/** Bytes of a short output. */
export const longest = 1_024

/** ASCII without control characters other than newline and tab. */
const plain = /^[\n\t -~]*$/

const none: Shaped = {
  text: "",
  truncated: false,
  report: { lines_total: 0, lines_kept: 0, characters_total: 0, characters_kept: 0 }
}

const newlinesIn = (text: string): number => {
  let count = 0
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) count++
  return count
}

/** `output` has one character for each byte. Undefined if a stage may change it. */
export const shape = (output: string, budget: CompiledBudget, { scan }: Secrets): Shaped | undefined => {
  if (output === "") return none
  if (budget.matches !== undefined || budget.keep.mode !== "all" || !plain.test(output)) return undefined
  let length = output.length
  while (length > 0 && output.charCodeAt(length - 1) === 10) length--
  if (length > budget.characters || scan.hint(output, 0) !== undefined) return undefined
  const text = output.slice(0, length)
  const lines = length === 0 ? 0 : newlinesIn(text) + 1
  const report = { lines_total: lines, lines_kept: lines, characters_total: length, characters_kept: length }
  return { text, truncated: false, report }
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
  readonly end: () => LineBudget.Shaped
}

interface CleanText {
  readonly add: (bytes: Uint8Array) => string
  /** Call once, after the last bytes. */
  readonly end: () => string
}

/** What everybody may read of a stream: its text, without terminal sequences and secrets. */
export const makeClean = (secrets: RedactionStream.Secrets): CleanText => {
  const decoder = Escapes.makeUtf8Text()
  const escapes = Escapes.makeEscapes()
  const redaction = RedactionStream.make(secrets)
  return {
    add: (bytes) => redaction.add(escapes.add(decoder.add(bytes))),
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
