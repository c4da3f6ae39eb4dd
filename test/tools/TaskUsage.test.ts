/** What sessions cost with those that they started, and who stands above whom. */
import { tmpdir } from "node:os"
import { assert, it } from "@effect/vitest"
import { Effect, Struct } from "effect"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import type { Session } from "../../packages/log/src/domain/Message.ts"
import { SessionStore } from "../../packages/log/src/store/SessionStore.ts"
import { newSession, say } from "../support/Harness.ts"
import { says } from "../support/ScriptedModel.ts"
import { delegates, family, play } from "./Family.ts"

/** Each answer of the scripted model uses 10 tokens in and 5 out. */
const used = (answers: number) => [answers * 10, answers * 5]
const inAndOut = ({ tokens }: Pick<Session, "tokens">) => [tokens.input, tokens.output]

it.scoped("TO-106: what children spend counts for every session above them, once, and for no other", () =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    const store = yield* SessionStore
    yield* play((turn) => {
      if (turn.told === "root") return delegates(turn, "child", "leaf")
      return turn.told === "child" ? delegates(turn, "below") : says("done")
    })
    const { id } = yield* newSession()
    const other = yield* newSession()
    yield* say(other.id, "other")
    yield* say(id, "root")
    yield* sessions.wait(id)
    yield* sessions.wait(other.id)
    const { items } = yield* sessions.list()
    const named = (title: string) =>
      items.find((session) => session.title === `about ${title}`)?.id ?? SessionID.make("ses_")
    // Two answers of the root, two of the child, one of the leaf, and one of what the child started.
    for (const [session, own, total] of [
      [id, 2, 6],
      [named("child"), 2, 3],
      [named("leaf"), 1, 1],
      [named("below"), 1, 1],
      [other.id, 1, 1]
    ] as const) {
      const usage = yield* sessions.usage(session)
      assert.deepStrictEqual([inAndOut(usage.own), inAndOut(usage.total)], [used(own), used(total)], session)
    }
    assert.strictEqual(yield* store.rootOf(named("below")), id)
    assert.strictEqual(yield* store.rootOf(id), id)
    assert.deepStrictEqual((yield* store.ancestors(named("below"))).map(Struct.get("id")), [named("child"), id])
    const missing = yield* Effect.flip(sessions.usage(SessionID.make("ses_missing")))
    assert.strictEqual(missing._tag, "SessionNotFound")
  }).pipe(Effect.provide(family()))
)

it.scoped("TO-106: a line of sessions has a greatest length, and a circle of removed ids ends every walk", () =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    const store = yield* SessionStore
    const location = { directory: tmpdir() }
    const first = (yield* sessions.create({ location })).id
    let parentID = first
    for (let depth = 1; depth <= 32; depth += 1) parentID = (yield* sessions.create({ location, parentID })).id
    assert.strictEqual((yield* store.ancestors(parentID)).length, 32)
    const refused = yield* Effect.flip(sessions.create({ location, parentID }))
    assert.deepInclude(refused, { _tag: "InvalidInput", field: "parentID" })

    const [a, b] = [SessionID.make("ses_a"), SessionID.make("ses_b")]
    yield* sessions.create({ id: a, location })
    yield* sessions.create({ id: b, location, parentID: a })
    yield* sessions.remove(a)
    yield* sessions.create({ id: a, location, parentID: b })
    assert.isAtMost((yield* store.ancestors(a)).length, 32)
    assert.strictEqual((yield* sessions.usage(a)).total.cost, 0)
  }).pipe(Effect.provide(family()))
)
