/**
 * Builds the real registry of a Location in a temporary folder, on a real log in memory, and renders the context that a session
 * there receives: the baseline, and each update after it.
 */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { Context, Effect, Layer } from "effect"
import * as ContextRegistry from "../../../packages/core/src/context/ContextRegistry.ts"
import * as SystemContext from "../../../packages/core/src/context/SystemContext.ts"
import {
  type ContextTurn,
  initialize,
  type Observed,
  reconcile
} from "../../../packages/core/src/context/SystemContext.ts"
import type { Agent } from "../../../packages/core/src/domain/Agent.ts"
import { CurrentLocation } from "../../../packages/log/src/domain/Values.ts"
import { SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import type { Snapshot } from "../../../packages/log/src/domain/Snapshot.ts"
import * as SqlSessionStore from "../../../packages/log/src/store/SqlSessionStore.ts"
import { memoryLog } from "../../support/Database.ts"

export const agent: Agent = {
  name: "build",
  permissions: [{ permission: "skill", resource: "*", verdict: "allow" }]
}
export const turn: ContextTurn = { sessionID: SessionID.make("ses_look"), model: undefined, agent }

/** A canonical temporary folder that is removed with the scope. */
export const folder = Effect.acquireRelease(
  Effect.sync(() => realpathSync(mkdtempSync(join(tmpdir(), "daybook-context-")))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

/** Writes a file and creates its folders. */
export const put = (path: string, content: string | Uint8Array) =>
  Effect.sync(() => {
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, content)
  })

/** A registry at the directory, until the scope closes. */
export const registryAt = Effect.fnUntraced(function* (directory: string, options: SystemContext.Options = {}) {
  const context = yield* Layer.build(
    ContextRegistry.layer.pipe(
      Layer.provideMerge(ContextRegistry.layerHost),
      Layer.provide(SystemContext.layerContextSettings(options)),
      Layer.provide(Layer.provideMerge(SqlSessionStore.layer, memoryLog)),
      Layer.provide(Layer.succeed(CurrentLocation, { directory }))
    )
  )
  const registry = Context.get(context, ContextRegistry.ContextRegistry)
  return { ...registry, context, look: (over: Partial<ContextTurn> = {}) => registry.observe({ ...turn, ...over }) }
})

/** The observation of one source only. */
export const only = (observed: Observed, key: string): Observed =>
  new Map([...observed].filter(([each]) => each === key))

/** The texts of one source for successive observations: the baseline first, then updates; `undefined` if there is none. */
export const listener = (key: string) => {
  let snapshot: Snapshot | undefined
  return (observed: Observed): string | undefined => {
    const mine = only(observed, key)
    if (snapshot === undefined) {
      const first = initialize(mine)
      if (first._tag === "Blocked") return `blocked: ${first.keys.join()}`
      snapshot = first.snapshot
      return first.baseline === "" ? undefined : first.baseline
    }
    const change = reconcile(mine, snapshot)
    if (change._tag === "Unchanged") return undefined
    snapshot = change.snapshot
    return change._tag === "Updated" ? change.text : `replaced: ${change.baseline}`
  }
}
