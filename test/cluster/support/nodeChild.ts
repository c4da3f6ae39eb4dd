/** A node of a cluster: answers every request with its name, and runs a prompt for each session id on its input. */
import { createInterface } from "node:readline"
import { Deferred, Duration, Effect, Layer, Stream } from "effect"
import * as Cluster from "../../../packages/cluster/src/Cluster.ts"
import { Sessions } from "../../../packages/core/src/session/Sessions.ts"
import * as Daybook from "../../../packages/embedded/src/Daybook.ts"
import { SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import * as Postgres from "../../../packages/postgres/src/Postgres.ts"
import * as ScriptedModel from "../../support/ScriptedModel.ts"

const [name = "", url = "", port = "", sweepMs = ""] = process.argv.slice(2)

const runtime = Daybook.layer({
  database: Postgres.config({ url, connections: 4 }),
  placement: Cluster.placement({
    host: "127.0.0.1",
    port: Number(port),
    sweepEvery: Number(sweepMs),
    sharding: {
      shardsPerGroup: 20,
      refreshAssignmentsInterval: Duration.millis(300),
      runnerHealthCheckInterval: Duration.seconds(1),
      shardLockRefreshInterval: Duration.seconds(1),
      shardLockExpiration: Duration.seconds(4)
    }
  })
}).pipe(Layer.provideMerge(ScriptedModel.layer()))

const answer = Stream.make(
  { type: "text-start", id: "t" } as const,
  { type: "text-delta", id: "t", delta: `from ${name}` } as const,
  { type: "text-end", id: "t" } as const,
  { type: "finish", reason: "stop", usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 } } as const
)

const program = Effect.gen(function* () {
  const sessions = yield* Sessions
  const model = yield* ScriptedModel.ScriptedModel
  yield* Effect.fork(Effect.forever(model.answer(answer).pipe(Effect.zipRight(model.request))))
  process.stdout.write("up\n")
  const lines = Stream.fromAsyncIterable(createInterface({ input: process.stdin }), (cause) => cause)
  yield* Stream.runForEach(lines, (line) =>
    Effect.gen(function* () {
      const id = SessionID.make(line)
      yield* sessions.create({ id, location: { directory: "/tmp" } })
      yield* sessions.prompt({ sessionID: id, prompt: { text: "who?" } })
      process.stdout.write(`${id}\n`)
    })
  )
  yield* Deferred.await(yield* Deferred.make<void>())
})

void Effect.runPromise(Effect.scoped(Effect.provide(program, runtime))).catch((cause: unknown) => {
  process.stderr.write(`${String(cause)}\n`)
  process.exit(1)
})
