/** The folder that a command works in, as the file system names it. Spec: CL-9 in specs/cli.md. */
import { Effect } from "effect"
import { constants } from "node:fs"
import { access, realpath, stat } from "node:fs/promises"
import { resolve } from "node:path"
import { UsageError } from "./Errors.ts"
import { oneLine } from "./render/Plain.ts"

const canonical = (path: string, what: string) =>
  Effect.tryPromise({
    try: async () => {
      const real = await realpath(path)
      if (!(await stat(real)).isDirectory()) return undefined
      await access(real, constants.R_OK | constants.X_OK)
      return real
    },
    catch: (cause) => (cause instanceof Error && "code" in cause ? String(cause.code) : String(cause))
  }).pipe(
    Effect.mapError((code) => {
      const advice =
        code === "EACCES" ? "; give yourself the permission to read and enter it, or name another folder" : ""
      return new UsageError({ message: `${what}: ${oneLine(path, 400)} cannot be entered (${code})${advice}` })
    }),
    Effect.filterOrFail(
      (real) => real !== undefined,
      () => new UsageError({ message: `${what}: ${oneLine(path, 400)} is no folder` })
    )
  )

/** The current folder. */
export const current = Effect.suspend(() =>
  Effect.try({
    try: () => process.cwd(),
    catch: () => new UsageError({ message: "the current folder is gone; change to one that is there" })
  }).pipe(Effect.flatMap((path) => canonical(path, "the current folder")))
)

/** The folder given with an option, relative to the current one, or the current one. */
export const given = (path: string | undefined, option: string) =>
  path === undefined ? current : canonical(resolve(path), option)

/** The folder that a session works in: that it can be read and entered. */
export const usable = (directory: string, sessionID: string) =>
  Effect.asVoid(canonical(directory, `the folder of ${sessionID}`))
