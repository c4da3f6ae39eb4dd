/** How many requests a token may send: the bucket alone, and over TCP. */
import { assert, it } from "@effect/vitest"
import { Effect, FastCheck as fc, Metric, Stream, Struct, TestClock } from "effect"
import * as Clients from "../../../packages/server/src/http/Clients.ts"
import { issue } from "../../../packages/server/src/http/Tokens.ts"
import { newSession } from "../../support/Harness.ts"
import { cases } from "../../support/Cases.ts"
import { frames } from "./support/Frames.ts"
import * as ServedApi from "./support/ServedApi.ts"
import { answer, post, request, token } from "./support/ServedApi.ts"

const Gaps = fc.array(fc.integer({ min: 0, max: 3_000 }), { maxLength: 60 })

it("HT-29: in any time a bucket lets through its size and what it gained, and the wait that it names is enough", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 8 }), Gaps, (perSecond, size, gaps) => {
      const buckets = Clients.makeBuckets({ perSecond, size })
      const taken: Array<number> = []
      let now = 0
      for (const gap of gaps) {
        now += gap
        const wait = buckets.take("a", now)
        if (wait === undefined) taken.push(now)
        else {
          assert.isAtLeast(wait, 1)
          now += wait * 1_000
          assert.isUndefined(buckets.take("a", now))
          taken.push(now)
        }
      }
      taken.forEach((from, first) => {
        taken.slice(first).forEach((to, more) => {
          assert.isAtMost(more + 1, size + ((to - from) / 1_000) * perSecond + 1e-6)
        })
      })
    }),
    { numRuns: cases(100) }
  )
})

it("HT-29: each key has a bucket of its own, an idle one fills to its size, and one of many is forgotten as full", () => {
  const { take } = Clients.makeBuckets({ perSecond: 1, size: 2 })
  const waits = (key: string, at: number) => [take(key, at), take(key, at), take(key, at)]
  assert.deepStrictEqual(waits("a", 0), [undefined, undefined, 1])
  assert.deepStrictEqual(waits("b", 0), [undefined, undefined, 1])
  assert.deepStrictEqual(waits("a", 60_000), [undefined, undefined, 1])
  for (let n = 0; n < 5_000; n++) take(`other ${n}`, 60_000)
  assert.deepStrictEqual(waits("a", 60_000), [undefined, undefined, 1])
})

it("HT-29: by default a token sends 8,000 requests at once, then 4,000 a second", () => {
  const { rated } = Clients.make(Clients.defaultLimits, false)
  const sends = (times: number, at: number) =>
    Array.from({ length: times }, () => rated("a", at)).filter((wait) => wait === undefined).length
  assert.deepStrictEqual([sends(10_000, 0), sends(10_000, 1_000), sends(1, 1_000)], [8_000, 4_000, 0])
})

const limited = Metric.tagged(Metric.counter("daybook_http_limited_total", { incremental: true }), "reason", "rate")

it.scoped("HT-29: a token that sends too much waits, others and streams do not, and the metric counts it", () =>
  Effect.gen(function* () {
    const { id } = yield* newSession()
    const before = (yield* Metric.value(limited)).count
    const statuses = yield* Effect.replicateEffect(
      Effect.map(answer(`/sessions/${id}`), ({ status }) => status),
      5
    )
    assert.deepStrictEqual(statuses, [200, 200, 200, 200, 429])
    const refused = yield* request(`/sessions/${id}`)
    assert.deepStrictEqual([refused.status, refused.headers.get("retry-after")], [429, "1"])
    assert.strictEqual((yield* Metric.value(limited)).count - before, 2)
    const other = { authorization: `Bearer ${issue(token, { scope: "read" })}` }
    assert.strictEqual((yield* answer(`/sessions/${id}`, { headers: other })).status, 200)
    for (let n = 0; n < 6; n++) {
      const found = yield* Stream.runCollect(frames(`/sessions/${id}/events?follow=0`))
      assert.isAbove(found.length, 1)
    }
    yield* TestClock.adjust("1 seconds")
    assert.strictEqual((yield* answer(`/sessions/${id}`)).status, 200)
  }).pipe(Effect.provide(ServedApi.layer({}, {}, { limits: { rate: 2 } })))
)

it.scoped("HT-29: prompts count like other requests, each once, whether they can be read or not", () =>
  Effect.gen(function* () {
    const { id } = yield* newSession()
    const statuses = yield* Effect.forEach(["hi", 1, "hi", "hi", "hi", "hi"], (text) =>
      Effect.map(post(`/sessions/${id}/prompts`, { prompt: { text }, resume: false }), ({ status }) => status)
    )
    assert.deepStrictEqual(statuses, [200, 400, 200, 200, 429, 429])
    yield* TestClock.adjust("1 seconds")
    const next = yield* Effect.replicateEffect(
      post(`/sessions/${id}/prompts`, { prompt: { text: "hi" }, resume: false }),
      3
    )
    assert.deepStrictEqual(next.map(Struct.get("status")), [200, 200, 429])
  }).pipe(Effect.provide(ServedApi.layer({}, {}, { limits: { rate: 2 } })))
)
