/** Pruned sessions are rebuilt from the state at their floor, byte for byte. Spec: specs/log.md. */
import { SqlClient } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import { Chunk, Effect, Layer, Stream } from "effect"
import type { SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import { draft } from "../../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../../packages/log/src/log/EventLog.ts"
import * as Doctor from "../../../packages/log/src/maintenance/Doctor.ts"
import * as Rebuild from "../../../packages/log/src/maintenance/Rebuild.ts"
import { layerStore } from "../../../packages/log/src/Store.ts"
import { SessionStore } from "../../../packages/log/src/store/SessionStore.ts"
import { cases } from "../../support/Cases.ts"
import type { LogLayer } from "../../support/Database.ts"
import { contents, readAll, session } from "../../support/Logs.ts"
import { begun, fill, pruned, share, turns } from "../../support/Pruning.ts"
import { turnLog } from "../../support/TurnLogs.ts"

/** Damages every row that the events above the floor make, and loses some. */
const damage = Effect.fnUntraced(function* (id: SessionID, floor: number) {
  const sql = yield* SqlClient.SqlClient
  const above = (column: string) =>
    sql`session = (SELECT session FROM event_sequence WHERE session_id = ${id}) AND ${sql(column)} > ${floor}`
  yield* sql`UPDATE session SET title = 'broken', cost = 7, frame = NULL, epoch = 0, activity_id = 'act_0' WHERE id = ${id}`
  yield* sql`UPDATE session_message SET type = 'broken', settled = NULL WHERE ${above("seq")}`
  yield* sql`DELETE FROM session_message WHERE ${above("seq")} AND seq % 2 = 0`
  yield* sql`DELETE FROM session_part WHERE ${above("seq")}`
  yield* sql`DELETE FROM session_input WHERE ${above("admitted_seq")}`
})

export const rebuildingPruned = (layer: LogLayer) => {
  it.effect.prop(
    "RT-15: a session that was pruned once, and again, is rebuilt byte for byte, whatever its rows above the floor became",
    [turnLog, share],
    ([appends, part]) =>
      Effect.gen(function* () {
        const [id, other] = [session(), session()]
        yield* fill(id, appends)
        yield* begun(other, 1)
        const { length } = yield* readAll(id)
        for (const bounds of [{ to: Math.floor(part * length) }, {}]) {
          const { cut } = yield* pruned(id, bounds)
          const live = yield* contents
          yield* damage(id, cut.to)
          assert.deepStrictEqual(yield* Rebuild.rebuild(id), { sessions: 1, events: length - 1 - cut.to })
          assert.deepStrictEqual(yield* contents, live)
          assert.strictEqual((yield* Rebuild.rebuild("all")).sessions, 2)
          assert.deepStrictEqual(yield* contents, live)
        }
      }).pipe(Effect.provide(layer)),
    { fastCheck: { numRuns: cases(6) } }
  )

  it.effect("RT-15, RT-16, CP-444: edits of messages below the floor are rebuilt, sound and shown", () =>
    Effect.gen(function* () {
      const [log, store, id] = [yield* EventLog, yield* SessionStore, session()]
      yield* begun(id, 4)
      const messages = (yield* store.messages({ sessionID: id })).items.map((message) => message.id)
      const edit = (nth: number) =>
        Effect.forEach(messages.slice(nth, nth + 1), (messageID) =>
          log.append(id, [
            draft("session.next.context.edited", { messageID, content: [{ type: "text", text: `edited ${nth}` }] })
          ])
        )
      yield* edit(0)
      const { length } = yield* readAll(id)
      for (const to of [Math.floor(length / 2), length]) {
        const shown = JSON.stringify(yield* store.context(id, -1))
        const { cut } = yield* pruned(id, { to })
        const live = yield* contents
        assert.strictEqual(JSON.stringify(yield* store.context(id, -1)), shown)
        assert.deepStrictEqual(Chunk.toReadonlyArray(yield* Stream.runCollect(Doctor.verify)), [])
        yield* damage(id, cut.to)
        yield* Rebuild.rebuild(id)
        assert.deepStrictEqual(yield* contents, live)
        yield* edit(1)
        yield* fill(id, turns(1))
      }
      const shown = JSON.stringify(yield* store.context(id, -1))
      for (const words of ["edited 0", "edited 1"]) assert.include(shown, words)
      assert.deepStrictEqual(Chunk.toReadonlyArray(yield* Stream.runCollect(Doctor.verify)), [])
    }).pipe(Effect.provide(Layer.provideMerge(layerStore, layer)))
  )

  it.effect("RT-15: a rebuild of a pruned session keeps its rows up to the floor as they are", () =>
    Effect.gen(function* () {
      const [sql, id] = [yield* SqlClient.SqlClient, session()]
      yield* begun(id, 4)
      const { cut } = yield* pruned(id, { to: 30 })
      assert.isAbove(cut.to, 0)
      yield* sql`UPDATE session_message SET time_created = 5 WHERE seq <= ${cut.to}`
      const before = yield* contents
      yield* sql`DELETE FROM session_message WHERE seq > ${cut.to}`
      yield* Rebuild.rebuild(id)
      assert.deepStrictEqual(yield* contents, before)
    }).pipe(Effect.provide(layer))
  )

  it.effect("RT-15: a pruned session whose state at the floor is another session's is refused and keeps its rows", () =>
    Effect.gen(function* () {
      const [sql, id, other] = [yield* SqlClient.SqlClient, session(), session()]
      for (const one of [id, other]) {
        yield* begun(one, 2)
        yield* pruned(one)
      }
      yield* sql`UPDATE session_floor SET base = (SELECT base FROM session_floor WHERE session_id = ${other})`
      const before = yield* contents
      const refused = yield* Effect.flip(Rebuild.rebuild(id))
      assert.deepInclude(refused, {
        _tag: "EventUnreadable",
        details: "the session's state at its floor cannot be read"
      })
      assert.deepStrictEqual(yield* contents, before)
    }).pipe(Effect.provide(layer))
  )
}
