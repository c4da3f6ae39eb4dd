/** Cuts and prunes sessions of a log in a test. */
import { SqlClient } from "@effect/sql"
import { Effect, FastCheck as fc } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import type { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import type { Draft } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { atOnce } from "../../packages/log/src/retention/Pace.ts"
import { type Bounds, cutOf, type Holder, selectSubject } from "../../packages/log/src/retention/Plan.ts"
import { prune } from "../../packages/log/src/retention/Prune.ts"
import { restore } from "../../packages/log/src/retention/Retention.ts"
import { temporaryFolder } from "./Database.ts"
import { created } from "./Logs.ts"
import { turn } from "./TurnLogs.ts"

/** Appends drafts, one append after another. */
export const fill = Effect.fnUntraced(function* (sessionID: SessionID, appends: ReadonlyArray<ReadonlyArray<Draft>>) {
  const log = yield* EventLog
  // Every append of a generated log has events.
  for (const drafts of appends) yield* log.append(sessionID, drafts as unknown as NonEmptyReadonlyArray<Draft>)
})

/** Turns that differ, with a call in every other one. */
export const turns = (count: number, length = 40): ReadonlyArray<ReadonlyArray<Draft>> =>
  Array.from({ length: count }, (_, index) =>
    turn(index, {
      prompt: `question ${index}`,
      answer: `answer ${index} `.repeat(length),
      outputs: index % 2 === 0 ? [] : [`output ${index} `.repeat(length), undefined]
    })
  )

/** A part of a log, in steps of a hundredth: a generated double would nearly always be next to 0 or 1. */
export const share: fc.Arbitrary<number> = fc.integer({ min: 0, max: 100 }).map((hundredths) => hundredths / 100)

/** A session of settled turns. */
export const begun = (sessionID: SessionID, count: number, length?: number) =>
  fill(sessionID, [[created], ...turns(count, length)])

/** Sessions of settled turns whose events alternate, turn by turn. */
export const interleaved = Effect.fnUntraced(function* (ids: ReadonlyArray<SessionID>, count: number) {
  const logs = ids.map((id) => ({ id, turns: turns(count, 1) }))
  for (const id of ids) yield* fill(id, [[created]])
  for (let index = 0; index < count; index++) {
    for (const { id, turns } of logs) yield* fill(id, turns.slice(index, index + 1))
  }
})

/** The greatest cut of a session within the bounds. */
export const cutWithin = Effect.fnUntraced(function* (
  sessionID: SessionID,
  bounds: Bounds = {},
  holders: ReadonlyArray<Holder> = []
) {
  const sql = yield* SqlClient.SqlClient
  const subject = yield* selectSubject(sql, sessionID)
  return subject === undefined
    ? yield* Effect.dieMessage("no such session")
    : yield* cutOf(sql, subject, bounds, holders)
})

/** Prunes a session within the bounds; returns its cut and the path of its archive. */
export const pruned = Effect.fnUntraced(function* (sessionID: SessionID, bounds: Bounds = {}, archive?: string) {
  const cut = yield* cutWithin(sessionID, bounds)
  return { cut, path: yield* prune(cut, { pace: atOnce, archive }) }
})

/** Pruning, for the contract of the log. */
export const retention = {
  begin: (sessionID: SessionID, turns: number) => begun(sessionID, turns, 1),
  prune: (sessionID: SessionID, to?: number) =>
    Effect.gen(function* () {
      const { path } = yield* pruned(sessionID, to === undefined ? {} : { to }, yield* temporaryFolder)
      return path === undefined ? Effect.void : restore(path, { pace: atOnce })
    })
}
