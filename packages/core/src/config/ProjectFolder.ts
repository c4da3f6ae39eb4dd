/**
 * The folder `.daybook` of a project. Whoever wrote the project wrote it; it counts only where the project is trusted.
 * Spec: CF-6, TR-20.
 */
import * as fs from "node:fs/promises"
import * as path from "node:path"
import { Effect } from "effect"
import type { Location } from "../session/Schemas.ts"
import { projectAt } from "../trust/Project.ts"
import type { Trust } from "../trust/ProjectTrust.ts"

/** Where a kind of file is in the Location's project, and how the project stands; nothing may lead out of its root. */
export const projectFolder = Effect.fnUntraced(function* (
  trust: Trust,
  { directory }: Location,
  kind: "agents" | "templates"
) {
  // A folder that is gone has no files either.
  const real = yield* Effect.orElseSucceed(
    Effect.tryPromise(() => fs.realpath(directory)),
    () => path.resolve(directory)
  )
  const { root, standing } = yield* projectAt(trust, real)
  return { root, standing, folder: path.join(root, ".daybook", kind) }
})
