/** Which deltas are published at once while the runner waits for its model, and which come with the next chunk. */
import { assert, describe, it } from "@effect/vitest"
import type * as AiResponse from "@effect/ai/Response"
import { textDeltaPart, textStartPart } from "@effect/ai/Response"
import { Chunk, Deferred, Duration, Effect, Fiber, Queue, Redacted, Stream } from "effect"
import { Models } from "@daybook/models"
import * as ProviderModel from "../../packages/core/src/model/ProviderModel.ts"
import { forEachChunk, type StreamPart } from "../../packages/core/src/model/ProviderStream.ts"
import * as Limits from "../../packages/core/src/support/Limits.ts"
import * as EventLoop from "../../packages/log/src/support/EventLoop.ts"
import * as OfflineModel from "../../packages/models/src/OfflineModel.ts"

type Parts = ReadonlyArray<AiResponse.StreamPart<never>>

const begin: StreamPart = textStartPart({ id: "a" })
const delta = (text: string): StreamPart => textDeltaPart({ id: "a", delta: text })

/** An answer whose parts the test brings, and which of them were taken at once and in a fiber. */
const scene = Effect.gen(function* () {
  const chunks = yield* Queue.unbounded<Chunk.Chunk<AiResponse.StreamPart<never>>>()
  const opened = yield* Deferred.make<ProviderModel.TakeNow | undefined>()
  const provider = yield* ProviderModel.make({
    streamText: () => Stream.never,
    openText: (_, takeNow) => Effect.as(Deferred.succeed(opened, takeNow), Queue.take(chunks))
  })
  const { model: _, ...resolved } = yield* OfflineModel.resolved
  const [atOnce, inFiber]: [Array<StreamPart>, Array<StreamPart>] = [[], []]
  const answer = (inactivity?: Duration.Duration, after: Effect.Effect<void> = Effect.void) =>
    forEachChunk(
      { ...resolved, policy: inactivity === undefined ? {} : { inactivity }, model: provider },
      { prompt: "Hi", tools: [] },
      (parts) =>
        Effect.zipRight(
          Effect.sync(() => inFiber.push(...parts)),
          after
        ),
      { now: (parts) => () => void atOnce.push(...parts) }
    )
  const bring = (...parts: ReadonlyArray<StreamPart>) => Queue.offer(chunks, Chunk.fromIterable(parts as Parts))
  return { answer, atOnce, bring, inFiber, opened }
})

describe("deltas while the runner waits for its model", () => {
  it.scoped("EX-783: deltas are taken in the step that brings them, and what must be stored in a fiber", () =>
    Effect.gen(function* () {
      const { answer, atOnce, inFiber, opened } = yield* scene
      yield* Effect.fork(answer())
      const takeNow = yield* Deferred.await(opened)
      yield* Effect.yieldNow()
      assert.isTrue(takeNow?.([delta("one"), delta("two")] as Parts))
      assert.isFalse(takeNow?.([delta("three"), begin] as Parts))
      assert.deepStrictEqual(atOnce, [delta("one"), delta("two")])
      assert.deepStrictEqual(inFiber, [])
    })
  )

  it.scoped("EX-783: a delta waits while an earlier chunk is stored", () =>
    Effect.gen(function* () {
      const { answer, atOnce, bring, inFiber, opened } = yield* scene
      const [storing, stored] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      yield* Effect.fork(
        answer(undefined, Effect.zipRight(Deferred.succeed(storing, undefined), Deferred.await(stored)))
      )
      const takeNow = yield* Deferred.await(opened)
      yield* bring(delta("one"))
      yield* Deferred.await(storing)
      assert.isFalse(takeNow?.([delta("two")] as Parts))
      yield* Deferred.succeed(stored, undefined)
      yield* Effect.yieldNow()
      assert.isTrue(takeNow?.([delta("two")] as Parts))
      assert.deepStrictEqual([inFiber, atOnce], [[delta("one")], [delta("two")]])
    })
  )

  it.scoped("EX-783, LM-12: a delta beyond a limit is not taken, and fails the answer", () =>
    Effect.gen(function* () {
      const { answer, atOnce, bring, opened } = yield* scene
      const running = yield* Effect.fork(Effect.flip(answer()))
      const takeNow = yield* Deferred.await(opened)
      yield* Effect.yieldNow()
      const large = delta("x".repeat(Limits.maxTextLength))
      assert.isTrue(takeNow?.([large] as Parts))
      assert.isFalse(takeNow?.([delta("y")] as Parts))
      yield* bring(delta("y"))
      assert.include((yield* Fiber.join(running)).failure.message, "which is the limit")
      assert.deepStrictEqual(atOnce, [large])
    })
  )

  it.live("EX-783: what a host's own fetch brings after the end of a wait is not taken", () =>
    Effect.gen(function* () {
      let write: (content: string) => void = () => undefined
      const body = new ReadableStream<Uint8Array>({
        start: (controller) => {
          write = (content) => {
            const data = JSON.stringify({ choices: [{ index: 0, delta: { content } }] })
            controller.enqueue(new TextEncoder().encode(`data: ${data}\n\n`))
          }
        }
      })
      const fetch: typeof globalThis.fetch = (input) =>
        Promise.resolve(
          String(input).endsWith("/chat/completions") ? new Response(body) : new Response("", { status: 404 })
        )
      const own = {
        api: "openai-compatible",
        baseUrl: "http://127.0.0.1:9/v1",
        apiKey: Redacted.make("k"),
        fetch
      } as const
      const resolver = yield* Models.make({ providers: { own } })
      const model = yield* resolver.resolve({ providerID: "own", id: "one" })
      const [heard, began] = [[] as Array<StreamPart>, yield* Deferred.make<void>()]
      const now = (parts: ReadonlyArray<StreamPart>) => () => void heard.push(...parts)
      const take = () => Effect.asVoid(Deferred.succeed(began, undefined))
      const reading = yield* Effect.fork(forEachChunk(model, { prompt: "Hi", tools: [] }, take, { now }))
      write("one ")
      yield* Deferred.await(began)
      yield* EventLoop.turn
      write("two ")
      yield* EventLoop.turn
      yield* Fiber.interrupt(reading)
      write("three ")
      yield* EventLoop.turn
      assert.deepStrictEqual(
        heard.map((part) => ("delta" in part ? part.delta : "")),
        ["two "]
      )
    })
  )

  it.scoped("EX-783, EX-T11: with a limit of silence each delta wakes the fiber that counts the silence", () =>
    Effect.gen(function* () {
      const { answer, opened } = yield* scene
      yield* Effect.fork(answer(Duration.seconds(1)))
      assert.isUndefined(yield* Deferred.await(opened))
    })
  )
})
