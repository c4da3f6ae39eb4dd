/** What the runtime warns of, as a line on stderr: for work that goes on after it. Spec: CL-112, CL-122 in specs/cli.md. */
import { Logger, LogLevel } from "effect"
import { oneLine } from "./render/Plain.ts"
import { standard } from "./Stream.ts"

const said = (part: unknown): string => (part instanceof Error ? part.message : String(part))

/** Beside what `DAYBOOK_DEBUG` logs. */
export const layer = Logger.add(
  Logger.make(({ logLevel, message }) => {
    if (LogLevel.lessThan(logLevel, LogLevel.Warning)) return
    const words = (Array.isArray(message) ? message : [message]).map(said).join(": ")
    standard().stderr.write(`daybook: ${oneLine(words, 2_000)}\n`, () => undefined)
  })
)
