/** Resolves the folder that a command works in to its real path. Spec: CL-9 in specs/cli.md. */
import { constants } from "node:fs"
import { access, realpath, stat } from "node:fs/promises"
import { basename, dirname, join, resolve } from "node:path"
import { Effect } from "effect"
import { codeOf } from "@daybook/log/support/SystemError"
import { oneLine } from "../render/Plain.ts"
import { UsageError } from "../support/Errors.ts"

/** What to do, by the code of the failure. */
type Advice = Readonly<Record<string, string>>

const ofAny: Advice = { EACCES: "; give yourself permission to read and enter it, or name another folder" }

const canonical = (path: string, what: string, advice = ofAny) =>
  Effect.tryPromise({
    try: async () => {
      const real = await realpath(path)
      if (!(await stat(real)).isDirectory()) return undefined
      await access(real, constants.R_OK | constants.X_OK)
      return real
    },
    catch: (cause) => codeOf(cause, String(cause))
  }).pipe(
    Effect.mapError((code) => {
      const then = advice[code] ?? ""
      return new UsageError({ message: `${what}: ${oneLine(path, 400)} cannot be entered (${code})${then}` })
    }),
    Effect.filterOrFail(
      (real) => real !== undefined,
      () => new UsageError({ message: `${what}: ${oneLine(path, 400)} is not a folder` })
    )
  )

export const current = Effect.suspend(() =>
  Effect.try({
    try: () => process.cwd(),
    catch: () => new UsageError({ message: "the current folder no longer exists; change to another folder" })
  }).pipe(Effect.flatMap((path) => canonical(path, "the current folder")))
)

/** The folder of an option, relative to the current one; by default the current one. */
export const given = (path: string | undefined, option: string) =>
  path === undefined ? current : canonical(resolve(path), option)

/** The real path, also of a deleted folder: the parents that still exist may be links. */
const realOrGone = async (path: string): Promise<string> => {
  try {
    return await realpath(path)
  } catch (cause) {
    const isGone = cause instanceof Error && "code" in cause && cause.code === "ENOENT"
    return isGone && dirname(path) !== path ? join(await realOrGone(dirname(path)), basename(path)) : path
  }
}

/** The folder of an option that filters stored sessions or prompts. The folder may have been deleted (CL-561). */
export const selected = (path: string) => Effect.promise(() => realOrGone(resolve(path)))

const ofSession: Advice = { ...ofAny, ENOENT: "; create it to go on with the session" }

/** Checks that a session's folder can be read and entered. */
export const usable = (directory: string, sessionID: string) =>
  Effect.asVoid(canonical(directory, `the folder of ${sessionID}`, ofSession))
