/** A full inbox: IN-12. */
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Context, Effect, Either, Metric } from "effect"
import { Sessions } from "../../../packages/core/src/session/Sessions.ts"
import * as Daybook from "../../../packages/embedded/src/Daybook.ts"
import * as Metrics from "../../../packages/log/src/support/Metrics.ts"
import { eventTypes, newSession, type Runtimes, say, scene, temporaryFolder } from "../../support/Harness.ts"

export const inboxBounds = ({ open, runtime }: Runtimes) => {
  const admissions = (types: ReadonlyArray<string>): number =>
    types.filter((type) => type === "session.next.prompt.admitted").length

  it.layer(runtime({ inboxLimit: 3 }))("a full inbox", (it) => {
    it.effect("IN-12: beyond the backlog's limit an admission fails typed and stores nothing", () =>
      Effect.gen(function* () {
        const { id, sessions } = yield* scene()
        const texts = ["a", "b", "c"]
        const inputs = yield* Effect.forEach(texts, (text) => say(id, text, { id: `msg_full-${text}`, resume: false }))
        const refused = yield* Effect.flip(say(id, "d", { id: "msg_full-d", resume: false }))
        assert.deepInclude(refused, { _tag: "InboxFullError", sessionID: id, limit: 3 })
        assert.deepStrictEqual(yield* sessions.inbox(id), inputs)
        // A retry of what is in needs no room; the refused id is still free.
        assert.deepStrictEqual(yield* say(id, "a", { id: "msg_full-a", resume: false }), inputs[0])
        const { id: other } = yield* newSession()
        assert.strictEqual((yield* say(other, "d", { id: "msg_full-d", resume: false })).sessionID, other)
      })
    )

    it.effect("IN-12: an admission that finds the inbox full never reaches the writer that all sessions share", () =>
      Effect.gen(function* () {
        const { id } = yield* newSession()
        yield* Effect.forEach(["a", "b", "c"], (text) => say(id, text, { resume: false }))
        const commits = Effect.map(Metric.value(Metrics.batchSize), ({ count }) => count)
        const before = yield* commits
        for (let n = 0; n < 20; n++) yield* Effect.flip(say(id, "d", { resume: false }))
        assert.strictEqual(yield* commits, before)
      })
    )

    it.effect("IN-12: of twenty admissions at once, exactly as many are taken as there is room", () =>
      Effect.gen(function* () {
        const { id, sessions } = yield* scene()
        const answers = yield* Effect.forEach(
          Array.from({ length: 20 }, (_, index) => `text ${index}`),
          (text) => Effect.either(say(id, text, { resume: false })),
          { concurrency: "unbounded" }
        )
        const admitted = answers.filter(Either.isRight)
        assert.strictEqual(admitted.length, 3)
        for (const answer of answers) if (Either.isLeft(answer)) assert.strictEqual(answer.left._tag, "InboxFullError")
        assert.strictEqual((yield* sessions.inbox(id)).length, 3)
        assert.strictEqual(admissions(yield* eventTypes(id)), 3)
      })
    )
  })

  it.scopedLive("IN-12: two processes that fill one inbox at once stay within its limit together", () =>
    Effect.gen(function* () {
      const filename = join(yield* temporaryFolder, "daybook.db")
      const options: Daybook.Options = { filename, inboxLimit: 5 }
      const [one, two] = [yield* open(options), yield* open(options)]
      const { id } = yield* Effect.provide(newSession(), one)
      const answers = yield* Effect.forEach(
        Array.from({ length: 16 }, (_, index) => index),
        (index) =>
          Effect.either(Effect.provide(say(id, `text ${index}`, { resume: false }), index % 2 === 0 ? one : two)),
        { concurrency: "unbounded" }
      )
      assert.strictEqual(answers.filter(Either.isRight).length, 5)
      const inbox = yield* Context.get(two, Sessions).inbox(id)
      assert.strictEqual(inbox.length, 5)
    })
  )
}
