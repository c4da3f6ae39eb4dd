/**
 * Writes to stdout and stderr and reports every lost byte. Node's streams ignore a short write to a file (a full disk), so
 * files and devices are written here, everything else by Node. Without Effect, because `ctx` and help use it.
 * Spec: CL-34, CL-44 in specs/cli.md.
 */
import { fstatSync, writeSync } from "node:fs"

/** Why a write failed. `closed`: the reader is gone, which is not the writer's failure. */
export interface Trouble {
  readonly closed: boolean
  readonly code: string
}

/** One of the process's two output streams. */
export interface Sink {
  readonly terminal: boolean
  /** The terminal's width in cells; undefined for a file or a pipe. */
  readonly columns: () => number | undefined
  /** Calls `done` when all data is written or the write failed. After a failure nothing more is written. */
  readonly write: (data: string | Uint8Array, done: (trouble?: Trouble) => void) => void
}

const troubleOf = (cause: unknown): Trouble => {
  const code = cause instanceof Error && "code" in cause && typeof cause.code === "string" ? cause.code : String(cause)
  return { closed: code === "EPIPE" || code === "ECONNRESET", code }
}

const words: Readonly<Record<string, string>> = {
  ENOSPC: "no space left on the device",
  EDQUOT: "the disk quota is used up",
  EFBIG: "the file may not grow any larger",
  EIO: "an input/output error"
}

/** The failure as part of a sentence. */
export const describe = ({ code }: Trouble): string => {
  const known = words[code]
  return known === undefined ? code : `${known} (${code})`
}

/** Whether it is a file, or a device that is not a terminal. */
const isDirect = (fd: number, terminal: boolean): boolean => {
  if (terminal) return false
  try {
    const stats = fstatSync(fd)
    return stats.isFile() || stats.isCharacterDevice() || stats.isBlockDevice()
  } catch {
    return false
  }
}

const writeAll = (fd: number, bytes: Uint8Array): Trouble | undefined => {
  try {
    for (let at = 0; at < bytes.length;) at += writeSync(fd, bytes, at)
    return undefined
  } catch (cause) {
    return troubleOf(cause)
  }
}

const make = (fd: 1 | 2): Sink => {
  const stream = fd === 1 ? process.stdout : process.stderr
  const terminal = stream.isTTY === true
  const direct = isDirect(fd, terminal)
  // A write's callback reports its failure; without a listener the stream would also throw it.
  stream.on("error", () => undefined)
  let failed: Trouble | undefined
  const end = (done: (trouble?: Trouble) => void, trouble: Trouble | undefined) => {
    failed ??= trouble
    done(failed)
  }
  return {
    terminal,
    columns: () => (terminal ? stream.columns : undefined),
    write: (data, done) => {
      if (failed !== undefined || data.length === 0) return done(failed)
      if (direct) return end(done, writeAll(fd, typeof data === "string" ? Buffer.from(data) : data))
      stream.write(data, (error) => end(done, error === undefined || error === null ? undefined : troubleOf(error)))
    }
  }
}

let sinks: { readonly stdout: Sink; readonly stderr: Sink } | undefined

export const standard = () => (sinks ??= { stdout: make(1), stderr: make(2) })

/** `EX_IOERR` of sysexits.h. */
export const exitOutputFailed = 74

/** Writes a text and ends the process. `bin/daybook.js` prints the help texts with it. */
export const print = (command: string, text: string): void => {
  const { stderr, stdout } = standard()
  stdout.write(text, (trouble) => {
    if (trouble === undefined || trouble.closed) return
    process.exitCode = exitOutputFailed
    stderr.write(`${command}: stdout cannot be written: ${describe(trouble)}\n`, () => undefined)
  })
}
