/**
 * A node of a cluster: answers each request with its name, but says no more than that to `hold`. Its input has a verb and a
 * session in each line.
 */
import { createInterface } from "node:readline"
import { Deferred, Effect, Layer, Stream } from "effect"
import * as Cluster from "../../../packages/cluster/src/Cluster.ts"
import { Sessions } from "../../../packages/core/src/session/Sessions.ts"
import * as Daybook from "../../../packages/embedded/src/Daybook.ts"
import { SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import * as Postgres from "../../../packages/postgres/src/Postgres.ts"
import * as ScriptedModel from "../../support/ScriptedModel.ts"

const [name = "", url = "", port = "", sweepMs = ""] = process.argv.slice(2)

const runtime = Daybook.layer({
  leaseMs: 3_000,
  // A node that takes up work has its shards at once.
  recovery: "resume",
  database: Postgres.config({ url, connections: 4 }),
  placement: Cluster.placement({
    host: "127.0.0.1",
    port: Number(port),
    sweepEvery: Number(sweepMs)
  })
}).pipe(Layer.provideMerge(ScriptedModel.layer()))

const text = ScriptedModel.textParts("t", `from ${name}`)
const whole = Stream.make(...text, ScriptedModel.finish())
const held = Stream.concat(Stream.fromIterable(text.slice(0, 2)), Stream.never)

const say = (...words: ReadonlyArray<string>) => Effect.sync(() => void process.stdout.write(`${words.join(" ")}\n`))

const program = Effect.gen(function* () {
  const sessions = yield* Sessions
  const model = yield* ScriptedModel.ScriptedModel
  const answerOne = Effect.flatMap(model.request, ({ prompt }) =>
    model.answer(JSON.stringify(prompt.content.at(-1)).includes("hold") ? held : whole)
  )
  yield* Effect.fork(Effect.forever(answerOne))
  const prompt = Effect.fnUntraced(function* (id: SessionID, text: string) {
    yield* sessions.create({ id, location: { directory: "/tmp" } })
    yield* sessions.prompt({ sessionID: id, prompt: { text } })
  })
  const verbs: Readonly<Record<string, (id: SessionID) => Effect.Effect<void, unknown>>> = {
    ask: (id) => prompt(id, "who?"),
    hold: (id) => prompt(id, "hold"),
    interrupt: (id) => sessions.interrupt(id),
    hear: (id) =>
      Effect.asVoid(
        Effect.forkDaemon(
          Stream.runForEach(sessions.live(id), (event) =>
            event.type === "session.next.text.delta" ? say("heard", id, event.data.delta) : Effect.void
          )
        )
      )
  }
  yield* say("up")
  const lines = Stream.fromAsyncIterable(createInterface({ input: process.stdin }), (cause) => cause)
  yield* Stream.runForEach(lines, (line) => {
    const [verb = "", id = ""] = line.split(" ")
    return Effect.zipRight(verbs[verb]?.(SessionID.make(id)) ?? Effect.void, say("did", verb, id))
  })
  yield* Deferred.await(yield* Deferred.make<void>())
})

void Effect.runPromise(Effect.scoped(Effect.provide(program, runtime))).catch((cause: unknown) => {
  process.stderr.write(`${String(cause)}\n`)
  process.exit(1)
})
