/**
 * Measures a prompt and its turn with an instant model while the files of a large store are exported in the exporter's
 * thread, against the same turns before it. Both threads have a core on a machine with two.
 */
import { join } from "node:path"
import * as LanguageModel from "@effect/ai/LanguageModel"
import { Effect, Fiber, Layer, Option, Stream } from "effect"
import { layerLanguageModel } from "../packages/core/src/model/ModelResolver.ts"
import * as ProviderModel from "../packages/core/src/model/ProviderModel.ts"
import { Sessions } from "../packages/core/src/session/Sessions.ts"
import * as Daybook from "../packages/embedded/src/Daybook.ts"
import { Exporter } from "../packages/files/src/Exporter.ts"
import { exporterAt } from "./ExportThread.ts"
import { quantile } from "./Figures.ts"
import * as Workload from "./Workload.ts"

const model = layerLanguageModel({ ref: Workload.model }).pipe(
  Layer.provide(
    Layer.effect(
      LanguageModel.LanguageModel,
      ProviderModel.make({
        generateText: () => Effect.dieMessage("the runner streams"),
        streamText: () =>
          Stream.make(
            { type: "text-start" as const, id: "t" },
            { type: "text-delta" as const, id: "t", delta: "It holds the tests." },
            { type: "text-end" as const, id: "t" },
            {
              type: "finish" as const,
              reason: "stop" as const,
              usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 }
            }
          )
      })
    )
  )
)

const warmUp = 30
const quietTurns = 60

export interface Result {
  /** Milliseconds of a turn, at the median and the 95th percentile. */
  readonly quiet: { readonly p50: number; readonly p95: number }
  readonly beside: { readonly p50: number; readonly p95: number }
}

/** A turn's milliseconds, in a session that the prompts fill. */
const turnIn = (sessionID: Parameters<(typeof Sessions)["Service"]["resume"]>[0]) =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    const started = performance.now()
    yield* sessions.prompt({ sessionID, prompt: { text: "And the last one?" }, resume: false })
    yield* sessions.resume(sessionID)
    return performance.now() - started
  })

const of = (times: ReadonlyArray<number>) => ({ p50: quantile(times, 0.5), p95: quantile(times, 0.95) })

/** Runs turns on the store while all of it is exported to an empty folder. */
export const measure = (filename: string, directory: string): Promise<Result> =>
  Effect.gen(function* () {
    const { id } = yield* (yield* Sessions).create({ location: { directory } })
    const turn = turnIn(id)
    yield* Effect.replicateEffect(turn, warmUp)
    const quiet = yield* Effect.replicateEffect(turn, quietTurns)
    const exporter = yield* Exporter
    const exporting = yield* Effect.fork(exporter.catchUp)
    const beside: Array<number> = []
    while (Option.isNone(yield* Fiber.poll(exporting))) beside.push(yield* turn)
    yield* Fiber.join(exporting)
    return { quiet: of(quiet), beside: of(beside) }
  }).pipe(
    Effect.provide(
      Layer.provideMerge(
        exporterAt(filename, join(directory, "beside")),
        Layer.provide(Daybook.layer({ filename }), model)
      )
    ),
    Effect.scoped,
    Effect.runPromise
  )
