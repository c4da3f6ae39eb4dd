/** What becomes of tasks when their process ends: in good order, or not. */
import { copyFileSync, existsSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect, Exit, Layer, Scope, Struct } from "effect"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import type { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { dataOf } from "../runner/support/Runs.ts"
import { GatedModel } from "../session/support/GatedModel.ts"
import { newSession, say, temporaryFolder } from "../support/Harness.ts"
import { giveFileTo, goneOwner } from "../support/Owners.ts"
import { says } from "../support/ScriptedModel.ts"
import { childrenOf, family, hands } from "./Family.ts"

/** A session that waits for its child, whose model is being asked. */
const waiting = Effect.gen(function* () {
  const model = yield* GatedModel
  const { id } = yield* newSession()
  yield* say(id, "root")
  yield* (yield* model.request).answer(hands("child"))
  yield* model.request
  return id
})

const statesOf = Effect.fnUntraced(function* (id: SessionID) {
  const sessions = yield* Sessions
  const line = [yield* sessions.get(id), ...(yield* childrenOf(id))]
  return line.map(({ activity }) => activity?.state)
})

it.scopedLive("TO-123, TO-104: closing the runtime interrupts the parent and its child, and both are settled", () =>
  Effect.gen(function* () {
    const filename = join(yield* temporaryFolder, "daybook.db")
    const scope = yield* Scope.make()
    const id = yield* Effect.provide(waiting, yield* Layer.buildWithScope(Layer.fresh(family({ filename })), scope))
    yield* Scope.close(scope, Exit.void)
    yield* Effect.gen(function* () {
      assert.deepStrictEqual(yield* statesOf(id), ["interrupted", "interrupted"])
      assert.strictEqual((yield* dataOf(id, "session.next.tool.failed")).length, 1)
      assert.deepStrictEqual(yield* (yield* Sessions).interrupted, [])
    }).pipe(Effect.provide(family({ filename })))
  })
)

it.scopedLive("TU-2: after a crash a task's call is failed, its child is listed as interrupted and not run again", () =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    const [filename, left] = [join(folder, "daybook.db"), join(folder, "left.db")]
    const id = yield* Effect.provide(waiting, yield* Layer.build(Layer.fresh(family({ filename }))))
    // What is on disk now is what a process that dies now leaves behind.
    for (const suffix of ["", "-wal"]) {
      if (existsSync(filename + suffix)) copyFileSync(filename + suffix, left + suffix)
    }
    yield* giveFileTo(left, goneOwner)
    yield* Effect.gen(function* () {
      const [model, sessions] = [yield* GatedModel, yield* Sessions]
      const [child] = yield* childrenOf(id)
      const cutOff = (yield* sessions.interrupted).map((session) => session.id)
      assert.sameMembers(cutOff, [id, child?.id])
      const resumed = yield* Effect.fork(sessions.resume(id))
      yield* (yield* model.request).answer(says("I do not know"))
      yield* resumed
      assert.deepStrictEqual(
        (yield* dataOf(id, "session.next.tool.failed")).map(({ error }) => error.type),
        ["tool.interrupted"]
      )
      assert.strictEqual(yield* model.pending, 0)
      assert.deepStrictEqual((yield* sessions.interrupted).map(Struct.get("id")), [child?.id])
    }).pipe(Effect.provide(family({ filename: left })))
  })
)
