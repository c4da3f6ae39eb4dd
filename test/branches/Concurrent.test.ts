/** Two runtimes on one database file that move the leaf of a session at the same time. Spec: HP-22 in specs/sessions.md. */
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Context, Effect, Either } from "effect"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { draft } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { newSession, open, temporaryFolder } from "../support/Harness.ts"
import { message, readAll } from "../support/Logs.ts"

const rounds = 2

it.scopedLive(
  "HP-22: of two processes that move the leaf at once, each moves it or is refused, and both read one leaf",
  () =>
    Effect.gen(function* () {
      const filename = join(yield* temporaryFolder, "log.sqlite")
      const [one, other] = [yield* open({ filename }), yield* open({ filename })]
      const [here, there] = [Context.get(one, Sessions), Context.get(other, Sessions)]
      const { id } = yield* Effect.provide(newSession(), one)
      const log = Context.get(one, EventLog)
      const said = [message(), message(), message()] as const
      for (const messageID of said)
        yield* log.append(id, [draft("session.next.synthetic", { messageID, text: messageID })])
      const moves = Effect.map(Effect.provide(readAll(id), one), (events) =>
        events.flatMap((event) => (event.type === "session.next.leaf.moved" ? [event.data] : []))
      )
      let moved = 0
      for (let round = 0; round < rounds; round++) {
        const outcomes = yield* Effect.all(
          [
            here.branch({ sessionID: id, messageID: said[round % 3 === 0 ? 1 : 0] }),
            there.branch({ sessionID: id, messageID: said[2] }),
            there.reset(id)
          ].map((move) => Effect.either(Effect.asVoid(Effect.map(move, (done) => void (moved += done.moved ? 1 : 0))))),
          { concurrency: "unbounded" }
        )
        for (const outcome of outcomes) if (Either.isLeft(outcome)) assert.strictEqual(outcome.left._tag, "SessionBusy")
        assert.isTrue(outcomes.some(Either.isRight))
        const stored = yield* moves
        assert.strictEqual(stored.length, moved)
        const leaf = stored.at(-1)?.messageID
        for (const sessions of [here, there]) {
          const tree = yield* sessions.tree({ sessionID: id })
          assert.strictEqual(tree.leafID, leaf)
          const shown = (yield* sessions.messages({ sessionID: id })).items.map((each) => each.id)
          assert.deepStrictEqual(shown, leaf === undefined ? [] : said.slice(0, said.indexOf(leaf) + 1))
        }
      }
      assert.isAbove(moved, 0)
    })
)
