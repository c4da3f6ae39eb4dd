/** The runtime with its facade over a server and a client, on a port of this machine. */
import { Effect, Layer } from "effect"
import { DaybookClient } from "../../../packages/client/src/DaybookClient.ts"
import * as RemoteSessions from "../../../packages/client/src/RemoteSessions.ts"
import * as Harness from "../../support/Harness.ts"
import * as ServedApi from "../../server/http/support/ServedApi.ts"
import { clientOf } from "./ServedClient.ts"

const client = Layer.effect(
  DaybookClient,
  Effect.flatMap(ServedApi.Served, ({ url }) => clientOf(url))
)

/** `runtime` of the harness: what uses `Sessions` talks to the server. */
export const runtime: Harness.Runtimes["runtime"] = (options, model) =>
  Layer.provide(RemoteSessions.layer, client).pipe(
    Layer.provideMerge(Layer.orDie(Layer.scoped(ServedApi.Served, ServedApi.serve()))),
    Layer.provideMerge(Harness.runtime(options, model))
  )

/** `open` of the harness. */
export const open: Harness.Runtimes["open"] = (options, model) => Layer.build(Layer.fresh(runtime(options, model)))
