/**
 * The plain files of sessions: where they lie, and the exporter that keeps them. Loaded only by what writes or checks
 * files. Spec: CL-101, CL-111 in specs/cli.md, specs/files.md.
 */
import { Store } from "@daybook/core"
import { Exporter, type SharedSpaces } from "@daybook/files"
import { Effect, Layer } from "effect"
import { homedir } from "node:os"
import { resolve } from "node:path"
import * as Configuration from "./Configuration.ts"
import type { UsageError } from "./Errors.ts"
import { rootPath } from "./Paths.ts"

/** The root that was given, else the environment's. */
export const rootOf = (given: string | undefined) =>
  Effect.sync(() => (given === undefined ? rootPath(process.env, homedir(), process.cwd()) : resolve(given)))

/** Who may read shared spaces, as it is configured. */
export const shared: Effect.Effect<SharedSpaces, UsageError> = Effect.map(
  Configuration.load,
  ({ shared = {} }) => shared
)

/** The exporter of a store under a root. */
export const exporter = (root: string) =>
  Layer.unwrapEffect(Effect.map(shared, (shared) => Exporter.layer({ root, shared })))

/** The same with the store of a database, and nothing that runs a session. */
export const layer = (filename: string, root: string) => Layer.provideMerge(exporter(root), Store.layer({ filename }))
