/** The folder `.daybook` of a project, which belongs to whoever wrote the project and not to the user. Spec: CF-6. */
import * as fs from "node:fs/promises"
import * as path from "node:path"
import { Effect } from "effect"
import { projectRoot } from "../context/ProjectRoot.ts"
import type { Location } from "../session/Schemas.ts"

/** Where a kind of file is in the Location's project; `root` is canonical, and nothing may lead out of it. */
export const projectFolder = Effect.fnUntraced(function* ({ directory }: Location, kind: "agents" | "templates") {
  // A folder that is gone has no files either.
  const real = yield* Effect.orElseSucceed(
    Effect.tryPromise(() => fs.realpath(directory)),
    () => path.resolve(directory)
  )
  const root = yield* projectRoot(real)
  return { root, folder: path.join(root, ".daybook", kind) }
})
