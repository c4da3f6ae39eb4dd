/** Collects what background jobs print between commands, redacted and bounded. Spec: SL-15, SL-27 in specs/shell.md. */
import * as OutputPipeline from "../text/OutputPipeline.ts"
import type { Secrets } from "../text/RedactionStream.ts"
import type { Sink } from "./StreamCutter.ts"

export interface LateOutput {
  readonly sink: Sink
  /** What was printed since the last call. */
  readonly take: () => string
}

/** Characters of late output that a result has. */
const longest = 10_000

export const make = (secrets: Secrets): LateOutput => {
  const budget = { matches: undefined, context: 0, keep: { mode: "all" as const }, characters: longest }
  let pipeline: OutputPipeline.OutputPipeline | undefined
  return {
    sink: (bytes) => {
      pipeline ??= OutputPipeline.make({ budget, secrets })
      pipeline.add(bytes)
    },
    take: () => {
      const text = pipeline?.end().text ?? ""
      pipeline = undefined
      return text
    }
  }
}
