/** A socket and retention: a session whose events were pruned is found, resumed and continued. */
import { join } from "node:path"
import { it } from "@effect/vitest"
import { Effect } from "effect"
import { assert } from "vitest"
import * as Store from "../../packages/log/src/Store.ts"
import { newSession } from "../support/Harness.ts"
import { pruned } from "../support/Pruning.ts"
import { says } from "../support/ScriptedModel.ts"
import { connect, deltasOf, fresh, script, typesOf } from "./support/Served.ts"

it.scopedLive("SO-111: a session whose events were pruned is found by its id, and goes on with later rows alone", () =>
  Effect.gen(function* () {
    const served = yield* fresh()
    const { id: session } = yield* Effect.provide(newSession(served.root), served.context)
    yield* script(served, ({ answer }) => Effect.zipRight(answer(says("one")), answer(says("two"))))
    const client = yield* connect(served.path)
    const rows = Effect.gen(function* () {
      yield* client.ask({ op: "resume", session })
      yield* client.ask({ op: "ping", id: "end" })
      return (yield* client.untilType("pong")).slice(0, -1)
    })
    yield* client.ask({ op: "send", id: "m1", session, input: "first" })
    yield* client.untilType("done")
    const { cut } = yield* Effect.provide(
      pruned(session),
      Store.layer({ filename: join(served.root, "daybook.sqlite") })
    )
    assert.isAbove(cut.events, 0)
    assert.deepStrictEqual(yield* rows, [])
    yield* client.ask({ op: "send", id: "m2", session, input: "second" })
    const frames = yield* client.untilType("done")
    assert.strictEqual(deltasOf(frames), "two")
    assert.deepStrictEqual(typesOf(yield* rows), ["start", "message", "done"])
  })
)
