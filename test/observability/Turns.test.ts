/** How provider turns are counted, by outcome. */
import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Metric, Stream } from "effect"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import * as Metrics from "../../packages/log/src/support/Metrics.ts"
import { newSession, runtime, say, scene } from "../support/Harness.ts"
import { failure, says, type Script, ScriptedModel } from "../support/ScriptedModel.ts"

const counted = (outcome: string) => Effect.map(Metric.value(Metrics.turnsWith(outcome)), ({ count }) => count)

/** Turns that ended and that failed while the effect ran. */
const during = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const before = { ended: yield* counted("ended"), failed: yield* counted("failed") }
    yield* effect
    return { ended: (yield* counted("ended")) - before.ended, failed: (yield* counted("failed")) - before.failed }
  })

const run = Effect.fnUntraced(function* (script: Script) {
  const { id } = yield* newSession()
  yield* (yield* ScriptedModel).answer(script)
  yield* say(id, "look")
  yield* Effect.exit((yield* Sessions).wait(id))
})

it.layer(runtime())("turns", (it) => {
  it.effect("OB-1: a turn that the provider answers is counted as ended, and as nothing else", () =>
    Effect.map(during(run(says("fine"))), (turns) => assert.deepStrictEqual(turns, { ended: 1, failed: 0 }))
  )

  it.effect("OB-1: a turn whose provider fails is counted as failed, and as nothing else", () =>
    Effect.map(during(run(Stream.fail(failure("the model is out")))), (turns) =>
      assert.deepStrictEqual(turns, { ended: 0, failed: 1 })
    )
  )

  it.effect("OB-1: a turn that is interrupted is counted as failed, and as nothing else", () =>
    Effect.gen(function* () {
      const turns = yield* during(
        Effect.gen(function* () {
          const { id, sessions } = yield* scene()
          const started = yield* Deferred.make<void>()
          const hangs = Stream.fromEffect(Effect.zipRight(Deferred.succeed(started, undefined), Effect.never))
          yield* (yield* ScriptedModel).answer(hangs)
          yield* say(id, "look")
          yield* Deferred.await(started)
          yield* sessions.interrupt(id)
        })
      )
      assert.deepStrictEqual(turns, { ended: 0, failed: 1 })
    })
  )
})
