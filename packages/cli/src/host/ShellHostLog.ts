/** Writes the warnings of a host of live shells, up to a limit: no one empties its log while it runs. Spec: SL-171 in specs/shell.md. */
import { Layer, Logger, LogLevel } from "effect"
import { logLine, secretsOf } from "../render/LogLine.ts"

/** Bytes that one host writes. */
const mostLogged = 1_048_576

/** A logger that writes whole lines until the first one that exceeds the limit. */
export const layer = (write: (line: string) => void, most: number = mostLogged): Layer.Layer<never> =>
  Layer.suspend(() => {
    const secrets = secretsOf(process.env)
    let left = most
    const logger = Logger.make((entry) => {
      const line = logLine(entry, "text", secrets)
      left -= Buffer.byteLength(line)
      if (left >= 0) write(line)
    })
    return Layer.merge(Logger.add(logger), Logger.minimumLogLevel(LogLevel.Warning))
  })
