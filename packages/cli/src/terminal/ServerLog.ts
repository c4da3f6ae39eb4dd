/** Writes the log of `serve` to stderr. Spec: CL-127 in specs/cli.md. */
import { Layer, Logger } from "effect"
import { type Format, levels, logLine, secretsOf } from "../render/LogLine.ts"
import { standard } from "../support/Stream.ts"

/** Logs entries of at least this level; nothing with `none`. */
export const layer = (format: Format, level: keyof typeof levels | "none") => {
  if (level === "none") return Layer.empty
  const secrets = secretsOf(process.env)
  const { stderr } = standard()
  // A log that cannot be written does not stop the server.
  const logger = Logger.make((entry) => stderr.write(logLine(entry, format, secrets), () => undefined))
  return Layer.merge(Logger.add(logger), Logger.minimumLogLevel(levels[level]))
}
