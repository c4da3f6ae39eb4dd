/**
 * Locates the `.daybook` folder of a project. The project's author controls it, so it is used only if the project is
 * trusted.
 * Spec: CF-6, TR-20.
 */
import * as path from "node:path"
import { Effect } from "effect"
import type { Location } from "@daybook/log/domain/Values"
import { realpath } from "../support/RealPath.ts"
import { projectAt } from "../trust/Project.ts"
import type { Trust } from "../trust/ProjectTrust.ts"

/**
 * The folder of one kind of file in the Location's project, and the project's trust; nothing may lead out of its root.
 */
export const projectFolder = Effect.fnUntraced(function* (
  trust: Trust,
  { directory }: Location,
  kind: "agents" | "templates"
) {
  // A removed folder has no files either.
  const real = yield* Effect.orElseSucceed(
    Effect.tryPromise(() => realpath(directory)),
    () => path.resolve(directory)
  )
  const { root, standing } = yield* projectAt(trust, real)
  return { root, standing, folder: path.join(root, ".daybook", kind) }
})
