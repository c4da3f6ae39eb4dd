/** How the model of any protocol fails: MD-16, MD-17 and MD-18 in specs/models.md. */
import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Stream } from "effect"
import { classifyError, type ProviderFailure } from "../../../packages/core/src/model/ProviderError.ts"
import { answer, type Api, connect, only, secret, stream } from "../support/Client.ts"
import type { Reply } from "../support/Server.ts"

type Failure = Partial<ProviderFailure>

/** Another attempt may succeed. */
export const passing: Failure = { retryable: true, overflow: false }
/** No attempt will. */
export const lasting: Failure = { retryable: false, overflow: false }
/** Only a shorter request will. */
export const tooLong: Failure = { retryable: false, overflow: true }

export interface Protocol {
  readonly api: Api
  readonly id: string
  /** By name, what fails the request, and what it means. A status is compared too. */
  readonly failures: Readonly<Record<string, readonly [Reply, Failure]>>
  /** By name, what fails the answer while it streams. */
  readonly errorParts: Readonly<Record<string, readonly [Reply, Failure]>>
  /** The beginning of an answer, with text. */
  readonly begun: Reply
}

export const failing = ({ api, begun, errorParts, failures, id }: Protocol): void => {
  for (const [name, [reply, expected]] of Object.entries(failures)) {
    it.scopedLive(`MD-16: ${name} is a typed error that says what it means, without the key`, () =>
      Effect.gen(function* () {
        const { model, server } = yield* connect(api, { id }, reply)
        const error = yield* Effect.flip(answer(model, { prompt: "go" }))
        const failure = classifyError(error)
        assert.deepInclude(failure, expected)
        if (reply.status !== undefined) assert.strictEqual(failure.statusCode, reply.status)
        assert.notInclude(
          `${error.message} ${JSON.stringify(error)} ${String(error)} ${JSON.stringify(failure)}`,
          secret
        )
        assert.strictEqual(server.received.length, 1)
      })
    )
  }

  it.scopedLive("MD-16: a server that is not there is a typed, retryable error", () =>
    Effect.gen(function* () {
      const { model } = yield* Effect.scoped(connect(api, { id }))
      const error = yield* Effect.flip(answer(model, { prompt: "go" }))
      assert.strictEqual(error._tag, "HttpRequestError")
      assert.isTrue(classifyError(error).retryable)
    })
  )

  for (const [name, [reply, expected]] of Object.entries(errorParts)) {
    it.scopedLive(`MD-17: ${name} within the answer is an error part`, () =>
      Effect.gen(function* () {
        const { model } = yield* connect(api, { id }, reply)
        const [part] = only(yield* answer(model, { prompt: "go" }), "error")
        assert.deepInclude(classifyError(part?.error), expected)
        assert.notInclude(JSON.stringify(part), secret)
      })
    )
  }

  for (const when of ["before the headers", "while the answer streams"]) {
    it.scopedLive(`MD-18: an interruption ${when} closes the connection`, () =>
      Effect.gen(function* () {
        const chunks = when === "before the headers" ? [] : begun.chunks
        const { model, server } = yield* connect(api, { id }, { chunks, ending: "silence" })
        const wrote = yield* Deferred.make<void>()
        const fiber = yield* stream(model, { prompt: "go" }).pipe(
          Stream.runForEach((part) => (part.type === "text-delta" ? Deferred.succeed(wrote, undefined) : Effect.void)),
          Effect.fork
        )
        yield* when === "before the headers" ? server.arrived : Deferred.await(wrote)
        yield* Fiber.interrupt(fiber)
        yield* server.abandoned
      })
    )
  }
}
