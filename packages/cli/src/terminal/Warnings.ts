/** Prints the runtime's warnings as lines on stderr, for work that continues. Spec: CL-112, CL-122 in specs/cli.md. */
import { Logger, LogLevel } from "effect"
import { oneLine } from "../render/Plain.ts"
import { standard } from "../support/Stream.ts"

const said = (part: unknown): string => (part instanceof Error ? part.message : String(part))

/** Adds to the logs of `DAYBOOK_DEBUG`. */
export const layer = Logger.add(
  Logger.make(({ logLevel, message }) => {
    if (LogLevel.lessThan(logLevel, LogLevel.Warning)) return
    const words = (Array.isArray(message) ? message : [message]).map(said).join(": ")
    standard().stderr.write(`daybook: ${oneLine(words, 2_000)}\n`, () => undefined)
  })
)
