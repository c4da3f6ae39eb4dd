/** The contracts of retention, on PostgreSQL, and nodes that prune one database. */
import { SqlClient } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import { type Context, Deferred, Effect, Fiber, Layer, Stream } from "effect"
import { describe } from "vitest"
import * as Daybook from "../../packages/embedded/src/Daybook.ts"
import type { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import * as Doctor from "../../packages/log/src/maintenance/Doctor.ts"
import { atOnce } from "../../packages/log/src/retention/Pace.ts"
import { asClaimed, claim, prune } from "../../packages/log/src/retention/Prune.ts"
import { selectSubject } from "../../packages/log/src/retention/Plan.ts"
import * as Retention from "../../packages/log/src/retention/Retention.ts"
import { immediately } from "../../packages/log/src/storage/Transaction.ts"
import * as Postgres from "../../packages/postgres/src/Postgres.ts"
import { archives } from "../retention/contract/Archive.ts"
import { branches } from "../retention/contract/Branches.ts"
import { claims } from "../retention/contract/Claims.ts"
import { verifyingPruned } from "../retention/contract/Doctor.ts"
import { planning } from "../retention/contract/Plan.ts"
import { policies } from "../retention/contract/Policy.ts"
import { pruning } from "../retention/contract/Prune.ts"
import { readers } from "../retention/contract/Readers.ts"
import { rebuildingPruned } from "../retention/contract/Rebuild.ts"
import { fittingSize } from "../retention/contract/Size.ts"
import { lacks } from "../support/Parts.ts"
import { freshSchema, postgresLog } from "../support/Postgres.ts"
import { readAll, renamed, session } from "../support/Logs.ts"
import { begun, cutWithin } from "../support/Pruning.ts"
import * as ScriptedModel from "../support/ScriptedModel.ts"

/** Two nodes of a database. */
const twoNodes = Effect.gen(function* () {
  const settings = yield* freshSchema
  const node = Layer.build(Layer.fresh(Postgres.layer({ ...settings, connections: 4 })))
  return { settings, one: yield* node, other: yield* node }
})

type Node = Context.Context<Layer.Layer.Success<ReturnType<typeof Postgres.layer>>>

const isSound = Effect.map(Stream.runCount(Doctor.verify), (findings) => findings === 0)

const floorOf = (id: SessionID) =>
  Effect.map(
    Effect.flatMap(SqlClient.SqlClient, (sql) => selectSubject(sql, id)),
    (subject) => subject?.floor
  )

/** Claims a session on a node, and begins a step that ends when it is let go. */
const stepHeld = Effect.fnUntraced(function* (node: Node, id: SessionID) {
  const [begins, ends] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
  const work = Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const subject = yield* selectSubject(sql, id)
    if (subject === undefined) return yield* Effect.dieMessage("no such session")
    const claimed = yield* claim(sql, subject)
    const step = Effect.zipRight(Deferred.succeed(begins, undefined), Deferred.await(ends))
    yield* asClaimed(sql, claimed)(step)
    return claimed
  })
  const fiber = yield* Effect.fork(Effect.provide(work, node))
  yield* Deferred.await(begins)
  return { claimed: Fiber.join(fiber), end: Deferred.succeed(ends, undefined) }
})

describe.skipIf(lacks("postgres"))("PostgreSQL", () => {
  for (const contract of [
    archives,
    branches,
    claims,
    fittingSize,
    planning,
    policies,
    pruning,
    readers,
    rebuildingPruned,
    verifyingPruned
  ]) {
    contract(postgresLog)
  }

  it.scopedLive(
    "PG-42, RT-12: of two nodes that prune a session the later claim goes on, and readers of both agree",
    () =>
      Effect.gen(function* () {
        const [{ one, other }, id] = [yield* twoNodes, session()]
        yield* Effect.provide(begun(id, 20), one)
        const cut = yield* Effect.provide(cutWithin(id), one)
        const all = yield* Effect.provide(readAll(id), other)
        const taking = yield* Effect.once(Effect.orDie(Effect.provide(prune(cut, { pace: atOnce }), other)))
        const lost = yield* Effect.flip(Effect.provide(prune(cut, { pace: atOnce, progress: () => taking }), one))
        assert.strictEqual(lost._tag, "PruneLost")
        for (const node of [one, other]) {
          assert.strictEqual(yield* Effect.provide(floorOf(id), node), cut.to)
          const expired = yield* Effect.flip(
            Effect.provide(
              Effect.flatMap(EventLog, (log) => log.read({ sessionID: id, after: cut.to - 1 })),
              node
            )
          )
          assert.deepInclude(expired, { _tag: "CursorExpired", floor: cut.to })
          assert.deepStrictEqual(yield* Effect.provide(readAll(id, cut.to), node), all.slice(cut.to + 1))
          assert.isTrue(yield* Effect.provide(isSound, node))
        }
      })
  )

  it.scopedLive("PG-42: during a step the session and others get events, and another claim or a removal waits", () =>
    Effect.gen(function* () {
      const [{ one, other }, id, free] = [yield* twoNodes, session(), session()]
      for (const each of [id, free]) yield* Effect.provide(begun(each, 2), one)
      const { claimed, end } = yield* stepHeld(one, id)
      for (const each of [id, free]) {
        yield* Effect.provide(
          Effect.flatMap(EventLog, (log) => log.append(each, [renamed("during")])),
          other
        )
      }
      const second = yield* stepHeld(other, id).pipe(Effect.fork)
      const removing = yield* Effect.fork(
        Effect.provide(
          Effect.flatMap(EventLog, (log) => log.remove(id)),
          one
        )
      )
      const waiting = Effect.provide(
        Effect.flatMap(
          SqlClient.SqlClient,
          (sql) => sql`SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%session_floor%'`
        ),
        one
      )
      yield* Effect.repeat(waiting, { until: ({ length }) => length === 2 })
      yield* end
      const first = yield* claimed
      // Whichever of the two came next, the first claim is over.
      const { sql, exit } = yield* Effect.provide(
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          yield* Effect.fork(Effect.flatMap(Fiber.join(second), (next) => next.end))
          yield* Fiber.join(removing)
          return { sql, exit: yield* Effect.flip(asClaimed(sql, first)(Effect.void)) }
        }),
        one
      )
      assert.strictEqual(exit._tag, "PruneLost")
      assert.deepStrictEqual(yield* sql`SELECT * FROM session_floor`, [])
      yield* Fiber.interrupt(second)
    })
  )

  it.scopedLive("PG-43: of the nodes of a database one applies a policy at a time", () =>
    Effect.gen(function* () {
      const [{ one, other }, id] = [yield* twoNodes, session()]
      yield* Effect.provide(begun(id, 3), one)
      const [held, ends] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const holding = Effect.flatMap(SqlClient.SqlClient, (sql) =>
        immediately(sql)(
          Effect.all([
            sql`SELECT pg_advisory_xact_lock(hashtextextended('daybook retention ' || current_schema(), 0))`,
            Deferred.succeed(held, undefined),
            Deferred.await(ends)
          ])
        )
      )
      const holder = yield* Effect.fork(Effect.provide(holding, other))
      yield* Deferred.await(held)
      const applied = Effect.provide(Effect.zipRight(Retention.apply({ keep: -1, pace: atOnce }), floorOf(id)), one)
      assert.strictEqual(yield* applied, -1)
      yield* Deferred.succeed(ends, undefined)
      yield* Fiber.join(holder)
      assert.isAbove((yield* applied) ?? -1, 0)
      // The lock is free again, on whichever connection of the pool the next one is.
      yield* Effect.provide(begun(session(), 2), one)
      for (const node of [other, one]) yield* Effect.provide(Retention.apply({ keep: -1, pace: atOnce }), node)
      const [{ held: locks } = { held: -1 }] = yield* Effect.provide(
        Effect.flatMap(
          SqlClient.SqlClient,
          (sql) => sql<{ readonly held: number }>`SELECT count(*) AS held FROM pg_locks WHERE locktype = 'advisory'
            AND objid = (hashtextextended('daybook retention ' || current_schema(), 0) & 4294967295)::oid`
        ),
        one
      )
      assert.strictEqual(locks, 0)
    })
  )

  it.scopedLive("PG-43: the option `retention` prunes there while the runtime works", () =>
    Effect.gen(function* () {
      const [settings, id] = [yield* freshSchema, session()]
      yield* Effect.scoped(
        Effect.flatMap(Layer.build(Postgres.layer(settings)), (node) => Effect.provide(begun(id, 3), node))
      )
      const runtime = Daybook.layer({
        database: Postgres.config(settings),
        retention: { keep: -1, pace: atOnce }
      }).pipe(Layer.provide(ScriptedModel.layer()))
      yield* Effect.provide(Effect.repeat(floorOf(id), { until: (floor) => floor !== undefined && floor > 0 }), runtime)
    })
  )
})
