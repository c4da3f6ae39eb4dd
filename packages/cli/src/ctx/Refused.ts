/**
 * Defines the errors of `ctx`: a sentence with an exit code. They are plain errors: loading Effect would take longer than the
 * work of `ctx`. Spec: CL-103 in specs/cli.md (AB-3).
 */

/** The exit codes of the ABI. */
export const exitCode = { ok: 0, failed: 1, usage: 2, denied: 13, unavailable: 69, internal: 70 } as const

/** The errno names of the ABI (FR-5) that `ctx` reports. */
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
export const usage = (message: string) => new Refused("EINVAL", `${message}; see ctx --help`, exitCode.usage)

/** The requested session or value does not exist. */
export const absent = (message: string) => new Refused("ENOENT", message, exitCode.failed)

/** A file is damaged. Nothing is guessed (FL-7): it must be rebuilt from the events. */
export const damaged = (message: string) =>
  new Refused("EIO", `EIO: ${message}; daybook files rebuild rewrites it from the events`, exitCode.failed)

/** The error for a path that the file system refuses to read. */
export const unreadable = (path: string, cause: unknown): Refused => {
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : String(cause)
  return code === "EACCES" || code === "EPERM"
    ? new Refused("EACCES", `EACCES: you may not read ${path}`, exitCode.denied)
    : new Refused("EIO", `${path} cannot be read (${code})`, exitCode.unavailable)
}
