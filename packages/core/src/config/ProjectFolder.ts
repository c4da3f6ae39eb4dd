/** The folder `.daybook` of a project, which belongs to whoever wrote the project and not to the user. Spec: CF-5, CF-6. */
import * as fs from "node:fs/promises"
import * as path from "node:path"
import { Effect } from "effect"
import { projectRoot } from "../session/Locations.ts"
import type { Location } from "../session/Schemas.ts"

/** Where a kind of file is in the Location's project; `root` is canonical, and nothing may lead out of it. */
export const projectFolder = Effect.fnUntraced(function* ({ directory }: Location, kind: "agents" | "templates") {
  const root = yield* projectRoot(directory)
  const real = yield* Effect.orElseSucceed(
    Effect.tryPromise(() => fs.realpath(root)),
    () => root
  )
  return { root: real, folder: path.join(real, ".daybook", kind) }
})

const remembered = 1_000

/** Logs each problem once, however often its file is looked at. */
export const warnOnce = (what: string) => {
  const told = new Set<string>()
  return ({ details, path: file }: { readonly path: string; readonly details: string }): Effect.Effect<void> =>
    Effect.suspend(() => {
      const problem = `${what} cannot be used as it is: ${file}: ${details}`
      if (told.has(problem)) return Effect.void
      if (told.size >= remembered) told.clear()
      told.add(problem)
      return Effect.logWarning(problem)
    })
}
