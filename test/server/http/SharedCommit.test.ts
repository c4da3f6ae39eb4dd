/**
 * Prompts of several requests in one commit. Method: a projector holds the commit of a first prompt until the appends of the
 * others wait behind it, and the commits are counted.
 */
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Metric } from "effect"
import { EventLog } from "../../../packages/log/src/log/EventLog.ts"
import * as Metrics from "../../../packages/log/src/support/Metrics.ts"
import { newSession, temporaryFolder } from "../../support/Harness.ts"
import { holdingAt } from "../../support/Holding.ts"
import * as ServedApi from "./support/ServedApi.ts"
import { answer, post } from "./support/ServedApi.ts"

const commits = Effect.map(Metric.value(Metrics.batchSize), ({ count }) => count)

/** Completes when the log was asked for so many appends from now on. */
const appending = Effect.fnUntraced(function* (count: number) {
  const [log, all] = [yield* EventLog, yield* Deferred.make<void>()]
  const { append } = { ...log }
  let left = count
  const counting: typeof append = (...given) =>
    Effect.suspend(() => {
      if (--left === 0) Deferred.unsafeDone(all, Effect.void)
      return append(...given)
    })
  Object.assign(log, { append: counting })
  yield* Effect.addFinalizer(() => Effect.sync(() => Object.assign(log, { append })))
  return Deferred.await(all)
})

it.scopedLive(
  "HT-12: prompts that share a commit get answers of their own, and one that is refused harms no other",
  () =>
    Effect.gen(function* () {
      const hold = yield* holdingAt(({ type }) => type === "session.next.prompt.admitted")
      const filename = join(yield* temporaryFolder, "daybook.db")
      yield* Effect.gen(function* () {
        const [one, two] = [yield* newSession(), yield* newSession()]
        const prompt = (sessionID: string, id: string, text: string) =>
          post(`/sessions/${sessionID}/prompts`, { id, prompt: { text }, resume: false })
        const first = yield* Effect.fork(prompt(one.id, "msg_first", "first"))
        yield* hold.reached
        const [before, asked] = [yield* commits, yield* appending(3)]
        const others = yield* Effect.fork(
          Effect.all(
            [
              prompt(one.id, "msg_second", "second"),
              prompt(two.id, "msg_first", "another text under an id that is in use"),
              prompt(two.id, "msg_third", "third")
            ],
            { concurrency: "unbounded" }
          )
        )
        yield* asked
        // The last of them is handed to the writer in the same round of the event loop.
        yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
        yield* hold.open
        assert.strictEqual((yield* Fiber.join(first)).status, 200)
        const [second, refused, third] = yield* Fiber.join(others)
        assert.strictEqual((yield* commits) - before, 2)
        assert.deepInclude(second.body, { id: "msg_second", sessionID: one.id })
        assert.deepInclude(third.body, { id: "msg_third", sessionID: two.id })
        assert.strictEqual(refused.status, 409)
        assert.deepInclude(refused.body, { _tag: "PromptConflictError", messageID: "msg_first", sessionID: two.id })
        for (const [{ id }, ids] of [
          [one, ["msg_first", "msg_second"]],
          [two, ["msg_third"]]
        ] as const) {
          const { body } = yield* answer(`/sessions/${id}/prompts`)
          assert.deepStrictEqual(Array.isArray(body) ? body.map((each: { readonly id: string }) => each.id) : body, ids)
        }
      }).pipe(Effect.provide(ServedApi.layer({ filename, projectors: [hold.projector] })))
    })
)
