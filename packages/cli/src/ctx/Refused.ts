/**
 * What `ctx` cannot do, as a sentence with an exit code. A plain error: `ctx` loads no Effect, since its work takes less
 * time than loading that would. Spec: CL-103 in specs/cli.md (AB-3).
 */

/** The exit codes of the ABI. */
export const exitCode = { ok: 0, failed: 1, usage: 2, denied: 13, unavailable: 69, internal: 70 } as const

/** The errno names of the ABI (FR-5), and of what a file system adds. */
export type Code = "EACCES" | "EINVAL" | "EIO" | "ENOENT"

export class Refused extends Error {
  readonly code: Code
  readonly exit: number

  constructor(code: Code, message: string, exit: number) {
    super(message)
    this.name = "Refused"
    this.code = code
    this.exit = exit
  }
}

/** The command line cannot be used. */
export const usage = (message: string) => new Refused("EINVAL", `${message}; ctx --help tells more`, exitCode.usage)

/** What was asked for is not there. */
export const absent = (message: string) => new Refused("ENOENT", message, exitCode.failed)

/** A file is not what it has to be. Nothing is guessed (FL-7): it is written anew from the events. */
export const damaged = (message: string) =>
  new Refused("EIO", `EIO: ${message}; daybook files rebuild writes it anew from the events`, exitCode.failed)

/** What the file system answered when a path was looked at. */
export const unreadable = (path: string, cause: unknown): Refused => {
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : String(cause)
  return code === "EACCES" || code === "EPERM"
    ? new Refused("EACCES", `EACCES: ${path} may not be read by you`, exitCode.denied)
    : new Refused("EIO", `${path} cannot be read (${code})`, exitCode.unavailable)
}
