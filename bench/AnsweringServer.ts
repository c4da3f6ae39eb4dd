/** Starts a socket server whose model gives one answer once its gate opens, and samples memory meanwhile. */
import { mkdirSync, rmSync } from "node:fs"
import { join } from "node:path"
import { LanguageModel, type Response } from "@effect/ai"
import { Context, Deferred, Effect, Layer, type Stream } from "effect"
import { layerLanguageModel } from "../packages/core/src/model/ModelResolver.ts"
import * as Garbage from "../packages/log/src/support/Garbage.ts"
import * as Daybook from "../packages/embedded/src/Daybook.ts"
import { serve } from "../packages/server/src/socket/SessionSocket.ts"
import { exporterAt } from "./ExportThread.ts"
import * as Workload from "./Workload.ts"

/** The usage that the model reports; the benchmarks ignore it. */
export const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2 }

export interface Serving {
  /** Where clients connect. */
  readonly path: string
  /** Lets the model answer. */
  readonly open: Effect.Effect<void>
}

/** Serves in an empty folder until the scope closes, then removes the folder. */
export const serving = Effect.fnUntraced(function* (
  directory: string,
  answer: (gate: Deferred.Deferred<void>) => Stream.Stream<Response.StreamPartEncoded>
) {
  yield* Effect.acquireRelease(
    Effect.sync(() => mkdirSync(directory, { recursive: true })),
    () => Effect.sync(() => rmSync(directory, { recursive: true, force: true }))
  )
  // As `daybook serve` does.
  Garbage.bound()
  const gate = yield* Deferred.make<void>()
  const model = Layer.effect(
    LanguageModel.LanguageModel,
    LanguageModel.make({
      generateText: () => Effect.dieMessage("the runner streams"),
      streamText: () => answer(gate)
    })
  )
  const resolver = layerLanguageModel({ ref: Workload.model }).pipe(Layer.provide(model))
  const daybook = (filename: string) => Layer.provide(Daybook.layer({ filename }), resolver)
  const core = yield* Layer.build(daybook(join(directory, "daybook.sqlite")))
  const files = yield* Layer.build(
    Layer.provide(exporterAt(join(directory, "daybook.sqlite"), directory), Layer.succeedContext(core))
  )
  const [socket] = yield* serve({
    root: directory,
    uid: 1000,
    agents: [{ name: "build" }],
    temp: daybook(":memory:")
  }).pipe(Effect.provide(Context.merge(core, files)))
  if (socket === undefined) return yield* Effect.dieMessage("nothing is served")
  return { path: socket.path, open: Effect.asVoid(Deferred.succeed(gate, undefined)) } satisfies Serving
})

/** Runs the effect and returns its result, its seconds, and the peak resident megabytes of the process. */
export const measured = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.acquireUseRelease(
    Effect.sync(() => {
      const highest = { memory: 0 }
      const look = () => (highest.memory = Math.max(highest.memory, process.memoryUsage.rss()))
      look()
      return { highest, look, sampler: setInterval(look, 20) }
    }),
    ({ highest, look }) =>
      Effect.gen(function* () {
        const started = performance.now()
        const result = yield* effect
        const seconds = (performance.now() - started) / 1000
        look()
        return { result, seconds, memory: highest.memory / 1e6 }
      }),
    ({ sampler }) => Effect.sync(() => clearInterval(sampler))
  )
