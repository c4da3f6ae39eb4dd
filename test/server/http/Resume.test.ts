/** Runs that outlast the request that began them. */
import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Stream, TestClock } from "effect"
import { Sessions } from "../../../packages/core/src/session/Sessions.ts"
import { newSession, say } from "../../support/Harness.ts"
import { failure, says, ScriptedModel } from "../../support/ScriptedModel.ts"
import { clientOf } from "../../client/support/ServedClient.ts"
import * as ServedApi from "./support/ServedApi.ts"
import { answer, Served } from "./support/ServedApi.ts"

const post = { method: "POST" }

/** A session whose run waits for the gate, then fails. */
const failing = Effect.gen(function* () {
  const [model, gate] = [yield* ScriptedModel, yield* Deferred.make<void>()]
  const { id } = yield* newSession()
  yield* say(id, "hello", { resume: false })
  yield* model.answer(Stream.fromEffect(Effect.zipRight(Deferred.await(gate), Effect.fail(failure("no such luck")))))
  return { id, model, fail: Deferred.succeed(gate, undefined) }
})

it.scoped("HT-69: a resume that outlasts its first request fails with the error of its run, and runs once", () =>
  Effect.gen(function* () {
    const { fail, id, model } = yield* failing
    const client = yield* clientOf((yield* Served).url)
    const resuming = yield* Effect.fork(Effect.flip(client.resume(id)))
    yield* model.request
    yield* TestClock.adjust("25 seconds")
    // The second request has come when the first has returned; both join the run.
    yield* TestClock.adjust("25 seconds")
    yield* fail
    const error = yield* Fiber.join(resuming)
    assert.strictEqual(error._tag, "ProviderFailed")
    assert.include(error.message, "no such luck")
    assert.strictEqual(yield* model.pending, 0)
  }).pipe(Effect.provide(ServedApi.layer()))
)

it.scoped("HT-14: a named resume is joined and asked about by its name, and an unknown one is waited for", () =>
  Effect.gen(function* () {
    const { fail, id, model } = yield* failing
    const first = yield* Effect.fork(answer(`/sessions/${id}/resume?id=mine`, post))
    yield* model.request
    yield* TestClock.adjust("25 seconds")
    assert.deepInclude((yield* Fiber.join(first)).body, { settled: false })
    const again = yield* Effect.fork(answer(`/sessions/${id}/resume?id=mine`, post))
    yield* fail
    yield* (yield* Sessions).wait(id)
    for (const { body, status } of [yield* Fiber.join(again), yield* answer(`/sessions/${id}/resumes/mine`)]) {
      assert.strictEqual(status, 502)
      assert.deepInclude(body, { _tag: "ProviderFailed" })
    }
    // The name has its outcome: no other run begins.
    assert.strictEqual((yield* answer(`/sessions/${id}/resume?id=mine`, post)).status, 502)
    assert.strictEqual(yield* model.pending, 0)
    assert.deepInclude((yield* answer(`/sessions/${id}/resumes/other`)).body, { settled: true })
    yield* model.answer(says("better"))
    assert.deepInclude((yield* answer(`/sessions/${id}/resume?id=next`, post)).body, { settled: true })
    assert.strictEqual((yield* answer(`/sessions/${id}/resume?id=${"x".repeat(101)}`, post)).status, 400)
  }).pipe(Effect.provide(ServedApi.layer()))
)
