/** Writes the log of `serve` to stderr. Spec: CL-127 in specs/cli.md. */
import { Layer, Logger } from "effect"
import { type Format, levels, logLine, secretsOf } from "../render/LogLine.ts"
import { standard } from "../support/Stream.ts"

export type Level = keyof typeof levels | "none"

/** Logs entries of at least this level; nothing with `none`. By default a terminal gets less: its person reads stdout too. */
export const layer = (format: Format, given: Level | undefined) => {
  const { stderr } = standard()
  const level = given ?? (stderr.terminal ? "warning" : "info")
  if (level === "none") return Layer.empty
  const secrets = secretsOf(process.env)
  // A log that cannot be written does not stop the server.
  const logger = Logger.make((entry) => stderr.write(logLine(entry, format, secrets), () => undefined))
  return Layer.merge(Logger.add(logger), Logger.minimumLogLevel(levels[level]))
}
