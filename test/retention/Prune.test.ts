/** Pruning removes events below a safe boundary and changes nothing else that the store shows. Spec: specs/retention.md. */
import { SqlClient } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import { shownAt } from "../../packages/core/src/request/Recorded.ts"
import type { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import type { Draft } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { atOnce } from "../../packages/log/src/retention/Pace.ts"
import { cutOf, selectSubject } from "../../packages/log/src/retention/Plan.ts"
import { prune } from "../../packages/log/src/retention/Prune.ts"
import { layerStore } from "../../packages/log/src/Store.ts"
import { cases } from "../support/Cases.ts"
import { memoryLog } from "../support/Database.ts"
import { contents, message, readAll, session, step } from "../support/Logs.ts"
import { begun, pruned, share } from "../support/Pruning.ts"
import { inputIDs, readModels } from "../support/ReadModels.ts"
import { turnLog } from "../support/TurnLogs.ts"

const memory = Layer.provideMerge(layerStore, memoryLog)

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
      for (const table of [
        "session",
        "session_input",
        "session_message",
        "session_part",
        "session_instruction",
        "session_leaf"
      ]) {
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
