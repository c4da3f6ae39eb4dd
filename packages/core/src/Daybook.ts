/** The embedded runtime: everything of `@daybook/core` as one layer. Spec: specs/architecture.md. */
import { NodeContext } from "@effect/platform-node"
import { tmpdir, userInfo } from "node:os"
import { dirname, join } from "node:path"
import { Effect, Layer } from "effect"
import * as Agents from "./agent/Agents.ts"
import * as Compaction from "./compaction/Compaction.ts"
import * as ContextEpoch from "./context/ContextEpoch.ts"
import * as ContextRegistry from "./context/ContextRegistry.ts"
import * as Identifiers from "./Identifiers.ts"
import type { Projector } from "./log/Appends.ts"
import * as SqlEventLog from "./log/SqlEventLog.ts"
import * as Permission from "./permission/Permission.ts"
import { layerHeadless, type PermissionAsker } from "./permission/PermissionAsker.ts"
import * as SqlPermissionStore from "./permission/SqlPermissionStore.ts"
import * as SessionRunner from "./runner/SessionRunner.ts"
import * as SessionExecution from "./session/SessionExecution.ts"
import * as SessionInput from "./session/SessionInput.ts"
import * as SessionOwner from "./session/SessionOwner.ts"
import * as SessionsLayer from "./session/SessionsLayer.ts"
import { Sessions } from "./session/Sessions.ts"
import * as SessionStore from "./session/SessionStore.ts"
import * as Database from "./storage/Database.ts"
import * as HostTools from "./tool/HostTools.ts"
import * as ToolOutputStore from "./tool/ToolOutputStore.ts"
import * as ToolRegistry from "./tool/ToolRegistry.ts"

export interface Options {
  /** The database: a path, or `:memory:` for a store that ends with the layer. */
  readonly filename: string
  /** Agents beside `build`. */
  readonly agents?: ReadonlyArray<Agents.Agent>
  /** Who answers permission questions. Nobody by default: what needs a question is refused. */
  readonly permissionAsker?: Layer.Layer<PermissionAsker>
  /** Inputs that may wait in one session; 1,000 by default. */
  readonly inboxLimit?: number
  /** Steers that become visible at one safe boundary; 100 by default, the rest follow at the next. */
  readonly steerBatchLimit?: number
  /** Where the whole of cut tool outputs is kept; beside the database by default. */
  readonly toolOutputs?: string
  /**
   * What to do at the start with sessions whose activity a dead process left: nothing (`manual`), so that nothing is
   * spent unasked, or go on with them (`resume`).
   */
  readonly recovery?: "manual" | "resume"
  /** Read models of other packages, written in the transaction of each append. */
  readonly projectors?: ReadonlyArray<Projector>
}

const outputsBeside = (filename: string): string =>
  filename === ":memory:"
    ? join(tmpdir(), `daybook-${userInfo().username}`, "tool-output")
    : join(dirname(filename), "tool-output")

/** Built once per Location, when a drain first enters it. */
const locationLayer = (options: Options) =>
  SessionRunner.layer({ steerBatchLimit: options.steerBatchLimit ?? 100 }).pipe(
    Layer.provide([ToolRegistry.layer, ContextRegistry.layer]),
    Layer.provide(Permission.layer)
  )

/** Cut-off sessions that go on at the same time. */
const resumedAtOnce = 16

const resumeInterrupted = Layer.scopedDiscard(
  Effect.gen(function* () {
    const sessions = yield* Sessions
    const cutOff = yield* sessions.interrupted
    yield* Effect.forEach(cutOff, ({ id }) => Effect.ignoreLogged(sessions.resume(id)), {
      concurrency: resumedAtOnce,
      discard: true
    }).pipe(Effect.forkScoped)
  })
)

/**
 * The runtime on one database: `Sessions`, `EventLog`, and the services that a host extends (`HostTools`,
 * `HostContext`). It needs a `ModelResolver`: `Models.layer` of `@daybook/models`, or `layerLanguageModel` around a
 * LanguageModel of your own. Closing the layer interrupts what runs, settles it, and closes the database.
 *
 * @example
 * ```ts
 * Daybook.layer({ filename: "daybook.sqlite" }).pipe(Layer.provide(Models.layer))
 * ```
 */
export const layer = (options: Options) => {
  const storage = Layer.mergeAll(
    Database.layer({ filename: options.filename }),
    Identifiers.layer,
    Agents.layer(options.agents),
    NodeContext.layer
  )
  const records = Layer.mergeAll(
    SqlEventLog.layer({ projectors: options.projectors ?? [] }),
    SessionStore.layer,
    SessionOwner.layer,
    HostTools.layer,
    ContextRegistry.layerHost,
    Compaction.layerNone,
    SqlPermissionStore.layer,
    options.permissionAsker ?? layerHeadless,
    ToolOutputStore.layer({ root: options.toolOutputs ?? outputsBeside(options.filename) })
  )
  const sessions = SessionsLayer.layer.pipe(
    Layer.provideMerge(
      Layer.mergeAll(
        SessionExecution.layer(locationLayer(options)),
        SessionInput.layer({ inboxLimit: options.inboxLimit ?? 1_000 })
      )
    ),
    Layer.provideMerge(ContextEpoch.layer),
    Layer.provideMerge(records),
    Layer.provideMerge(storage)
  )
  return options.recovery === "resume" ? Layer.provideMerge(resumeInterrupted, sessions) : sessions
}
