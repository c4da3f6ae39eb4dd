/** Pruning removes events below a safe boundary and changes nothing else that the store shows. Spec: specs/log.md. */
import { SqlClient } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import { Effect, Layer, Struct } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import { shownAt } from "../../../packages/core/src/request/Recorded.ts"
import { ActivityID, type SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import { type Draft, draft } from "../../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../../packages/log/src/log/EventLog.ts"
import { atOnce } from "../../../packages/log/src/retention/Pace.ts"
import { cutOf, selectSubject } from "../../../packages/log/src/retention/Plan.ts"
import { prune } from "../../../packages/log/src/retention/Prune.ts"
import * as Retention from "../../../packages/log/src/retention/Retention.ts"
import { SessionStore } from "../../../packages/log/src/store/SessionStore.ts"
import { layerStore } from "../../../packages/log/src/Store.ts"
import { cases } from "../../support/Cases.ts"
import type { LogLayer } from "../../support/Database.ts"
import { call, contents, created, message, readAll, session, step, tokens, unique } from "../../support/Logs.ts"
import { begun, pruned, share } from "../../support/Pruning.ts"
import { inputIDs, readModels } from "../../support/ReadModels.ts"
import { turnLog } from "../../support/TurnLogs.ts"

const fill = Effect.fnUntraced(function* (sessionID: SessionID, appends: ReadonlyArray<ReadonlyArray<Draft>>) {
  const log = yield* EventLog
  for (const drafts of appends) yield* log.append(sessionID, drafts as unknown as NonEmptyReadonlyArray<Draft>)
})

const cutAt = Effect.fnUntraced(function* (sessionID: SessionID, to?: number) {
  const sql = yield* SqlClient.SqlClient
  const subject = yield* selectSubject(sql, sessionID)
  if (subject === undefined) return yield* Effect.dieMessage("no such session")
  return yield* cutOf(sql, subject, to === undefined ? {} : { to }, [])
})

export const pruning = (layer: LogLayer) => {
  const memory = Layer.provideMerge(layerStore, layer)
  it.effect.prop(
    "RT-6: a pruned session shows what it showed before",
    [turnLog, share],
    ([appends, part]) =>
      Effect.gen(function* () {
        const id = session()
        yield* fill(id, appends)
        const inputs = yield* inputIDs(id)
        const all = yield* readAll(id)
        const cut = yield* cutAt(id, Math.floor(part * all.length))
        const before = [yield* contents, yield* readModels(id, { after: cut.to, inputs })] as const
        yield* prune(cut, { pace: atOnce })
        const after = [yield* contents, yield* readModels(id, { after: cut.to, inputs })] as const
        assert.deepStrictEqual(after[1], before[1])
        for (const table of ["session", "session_input", "session_message", "session_instruction", "session_leaf"]) {
          assert.deepStrictEqual(after[0][table], before[0][table])
        }
        assert.deepStrictEqual(yield* readAll(id, cut.to), all.slice(cut.to + 1))
      }).pipe(Effect.provide(memory)),
    { fastCheck: { numRuns: cases(10) } }
  )

  it.effect("RT-7, RQ-34: a request above the floor keeps the system texts and tools of frames below it", () =>
    Effect.gen(function* () {
      const id = session()
      yield* begun(id, 3)
      yield* fill(id, [[step(message())]])
      const at = (yield* readAll(id)).length - 1
      const before = yield* shownAt(id, at)
      assert.deepInclude(before.frame, { system: ["You help."], settings: { turn: 2 } })
      const { cut } = yield* pruned(id)
      assert.strictEqual(cut.to, at - 1)
      assert.deepStrictEqual(yield* shownAt(id, at), before)
    }).pipe(Effect.provide(memory))
  )

  const partRows = (id: SessionID) =>
    Effect.flatMap(
      SqlClient.SqlClient,
      (sql) => sql<{ readonly message_id: string; readonly name: string | null; readonly seq: number }>`
      SELECT message_id, name, seq FROM session_part
      WHERE session = (SELECT session FROM event_sequence WHERE session_id = ${id}) ORDER BY seq`
    )

  const completed = (tool: string) => {
    const [messageID, callID] = [message(), `call_${tool}`]
    return [
      step(messageID),
      ...call({ messageID, callID, tool, input: {} }),
      draft("session.next.tool.success", {
        assistantMessageID: messageID,
        callID,
        structured: {},
        content: [{ type: "text", text: "done" }],
        provider: { executed: false }
      }),
      draft("session.next.step.ended", { assistantMessageID: messageID, finish: "stop", cost: 0, tokens: tokens(1) })
    ]
  }

  /** A settled activity whose steps call these tools. */
  const calling = (tools: ReadonlyArray<string>): ReadonlyArray<Draft> => {
    const activityID = ActivityID.make(`act_${unique()}`)
    return [
      draft("session.next.activity.started", { activityID, trigger: "steer" }),
      ...tools.flatMap(completed),
      draft("session.next.activity.settled", { activityID, outcome: "completed" })
    ]
  }

  it.effect(
    "ST-37: parts of messages up to the floor have no rows, but those of lists and questions; the others keep theirs",
    () =>
      Effect.gen(function* () {
        const id = session()
        yield* fill(id, [[created], calling(["bash", "todo", "question"]), calling(["bash"])])
        const before = yield* partRows(id)
        const { cut } = yield* pruned(id, { to: 20 })
        assert.isAbove(cut.to, 5)
        const after = yield* partRows(id)
        assert.deepStrictEqual(
          after,
          before.filter(({ name, seq }) => seq > cut.to || name !== "bash")
        )
        assert.deepStrictEqual(after.map(Struct.get("name")), ["todo", "question", "bash"])
      }).pipe(Effect.provide(memory))
  )

  it.effect("ST-37: a part that has a row and is in a block is shown once", () =>
    Effect.gen(function* () {
      const [id, sql, store] = [session(), yield* SqlClient.SqlClient, yield* SessionStore]
      yield* begun(id, 4)
      const shown = store.messages({ sessionID: id, limit: 500 })
      const before = yield* shown
      yield* sql`CREATE TABLE part_before AS SELECT * FROM session_part`
      yield* pruned(id)
      assert.deepStrictEqual(yield* partRows(id), [])
      // As between the steps of a prune or a restore.
      yield* sql`INSERT INTO session_part SELECT * FROM part_before ORDER BY seq LIMIT 2`
      assert.deepStrictEqual(yield* shown, before)
    }).pipe(Effect.provide(memory))
  )

  it.effect("RT-11: parts that a dead prune left up to the floor are removed by the next run", () =>
    Effect.gen(function* () {
      const [id, sql] = [session(), yield* SqlClient.SqlClient]
      yield* begun(id, 4)
      yield* sql`CREATE TABLE part_before AS SELECT * FROM session_part`
      yield* pruned(id)
      yield* sql`INSERT INTO session_part SELECT * FROM part_before`
      yield* sql`UPDATE session_floor SET claim = 'dead' WHERE session_id = ${id}`
      yield* Retention.run({ to: -1, holders: Retention.noHolders }, { pace: atOnce })
      assert.deepStrictEqual(yield* partRows(id), [])
      assert.deepStrictEqual(yield* sql`SELECT claim FROM session_floor`, [{ claim: null }])
    }).pipe(Effect.provide(memory))
  )
}
