/**
 * Exports that a host may write without type annotations. Compiled with declarations against the packed packages, this file
 * fails if a public signature needs a type that a host cannot name.
 */
import { Tool } from "@effect/ai"
import { Effect, Layer, ManagedRuntime, Schema } from "effect"
import * as Core from "@daybook/embedded"
import { Exporter, type Finding, verify } from "@daybook/files"
import { Models } from "@daybook/models"
import { serve, Wire } from "@daybook/server"
import { Fold } from "@daybook/transcript"

export const runtime = Core.Daybook.layer({ filename: ":memory:" }).pipe(Layer.provide(Models.layer))
export const managed = ManagedRuntime.make(runtime)
export const storeLayer = Core.Store.layer({ filename: ":memory:" })

export const services = Effect.all({
  agents: Core.Agents.Agents,
  context: Core.ContextRegistry.HostContext,
  contextSettings: Core.SystemContext.ContextSettings,
  execution: Core.SessionExecution.SessionExecution,
  ids: Core.Identifiers.Identifiers,
  log: Core.EventLog.EventLog,
  owner: Core.SessionOwner.SessionOwner,
  permissions: Core.PermissionStore.PermissionStore,
  read: Core.Database.ReadSql,
  registry: Core.ToolRegistry.ToolRegistry,
  resolver: Core.ModelResolver.ModelResolver,
  sessions: Core.Sessions.Sessions,
  store: Core.SessionStore.SessionStore,
  tools: Core.HostTools.HostTools
})

export const tool = Core.Tool.define(
  Tool.make("double", {
    parameters: { n: Schema.NumberFromString },
    success: Schema.Number,
    failure: Schema.Struct({ why: Schema.String })
  }),
  { handler: ({ n }) => (n > 0 ? Effect.succeed(2 * n) : Effect.fail({ why: "it is negative" })) }
)

export const branch = Core.SystemContext.source({
  key: "acme/branch",
  schema: Schema.NumberFromString,
  load: ({ agent }) => Effect.succeed(Core.SystemContext.available(agent.name.length)),
  baseline: (value) => `The branch is ${value}.`,
  update: (before, now) => `The branch was ${before} and is ${now} now.`
})

/** Every failure of a verb can be caught by its tag with the root's exports. */
export const prompted: Effect.Effect<unknown, never, Core.Sessions.Sessions> = Effect.flatMap(
  Core.Sessions.Sessions,
  (sessions) => sessions.prompt({ sessionID: Core.Identifiers.SessionID.make("ses_x"), prompt: { text: "hello" } })
).pipe(
  Effect.catchTags({
    EventRefused: (error: Core.EventLog.EventRefused) => Effect.succeed(error),
    ImportUnfinished: (error: Core.Imported.ImportUnfinished) => Effect.succeed(error),
    InboxFullError: (error: Core.InboxError.InboxFullError) => Effect.succeed(error),
    InvalidDurableEvent: (error: Core.EventLog.InvalidDurableEvent) => Effect.succeed(error),
    InvalidInput: (error: Core.InvalidInput.InvalidInput) => Effect.succeed(error),
    LogUnavailable: (error: Core.EventLog.LogUnavailable) => Effect.succeed(error),
    MessageUnreadable: (error: Core.StoreError.MessageUnreadable) => Effect.succeed(error),
    OwnerLost: (error: Core.EventLog.OwnerLost) => Effect.succeed(error),
    PromptConflictError: (error: Core.InboxError.PromptConflictError) => Effect.succeed(error),
    SeqConflict: (error: Core.EventLog.SeqConflict) => Effect.succeed(error),
    SessionNotFound: (error: Core.EventLog.SessionNotFound) => Effect.succeed(error)
  })
)

export const files = Exporter.layer({ root: "/home/ada/ctx" }).pipe(Layer.provideMerge(storeLayer))
export const findings = verify({ root: "/home/ada/ctx" })
export const found = (finding: Finding): string => finding.details
export const noFold: Fold.State = Fold.initial
export const served = serve({
  root: "/home/ada/ctx",
  uid: 1000,
  agents: [{ name: "build" }],
  temp: Layer.provide(Core.Daybook.layer({ filename: ":memory:", toolOutputs: false }), Models.layer)
})
export const frame: string = Wire.encodeFrame({ type: "pong" })

/** And every failure of the layer. */
export const opened: Layer.Layer<Core.Daybook.Services, never, Core.ModelResolver.ModelResolver> = Core.Daybook.layer({
  filename: ":memory:"
}).pipe(
  Layer.catchAll(
    (error: Core.Database.DatabaseError | Core.StoreError.StoreError | Core.SessionExecution.PlacementFailed) =>
      Layer.die(error)
  )
)
