/** The folder that a command works in, as the file system names it. Spec: CL-9 in specs/cli.md. */
import { Effect } from "effect"
import { realpath, stat } from "node:fs/promises"
import { resolve } from "node:path"
import { UsageError } from "./Errors.ts"
import { oneLine } from "./render/Plain.ts"

const canonical = (path: string, what: string) =>
  Effect.tryPromise({
    try: async () => {
      const real = await realpath(path)
      return (await stat(real)).isDirectory() ? real : undefined
    },
    catch: (cause) => (cause instanceof Error && "code" in cause ? String(cause.code) : String(cause))
  }).pipe(
    Effect.mapError((code) => new UsageError({ message: `${what}: ${oneLine(path)} cannot be entered (${code})` })),
    Effect.filterOrFail(
      (real) => real !== undefined,
      () => new UsageError({ message: `${what}: ${oneLine(path)} is no folder` })
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
