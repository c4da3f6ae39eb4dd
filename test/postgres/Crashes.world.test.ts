/**
 * Method: two nodes append from many fibers while the real server crashes and recovers several times. An independent reader
 * then compares the log with the acknowledgements: each acknowledged append is there once, and none twice.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Layer } from "effect"
import { describe } from "vitest"
import type { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import * as Postgres from "../../packages/postgres/src/Postgres.ts"
import { begin, readAll, renamed, session } from "../support/Logs.ts"
import { lacks } from "../support/Parts.ts"
import * as PostgresServer from "../support/PostgresServer.ts"

/** A server of its own. */
const server = Effect.acquireRelease(
  Effect.sync(() => {
    const folder = mkdtempSync(join(tmpdir(), "daybook-crash-"))
    return { folder, ...PostgresServer.start(folder, process.pid, ["fsync=off"]) }
  }),
  ({ folder }) =>
    Effect.sync(() => {
      PostgresServer.stop(folder)
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
    })
)

const [crashes, between, publishers] = [4, 60, 12]

describe.skipIf(lacks("postgres"))("PostgreSQL", () => {
  it.scopedLive("PG-7, PG-8: while the server crashes and recovers, each acknowledged append is stored once", () =>
    Effect.gen(function* () {
      const { folder, url } = yield* server
      const node = Layer.build(Layer.fresh(Postgres.layer({ url })))
      const [one, two] = [yield* node, yield* node]
      const ids: ReadonlyArray<SessionID> = Array.from({ length: publishers }, () => session())
      const logOf = (index: number) => Context.get(index % 2 === 0 ? one : two, EventLog)
      yield* Effect.forEach(ids, (id) => Effect.provide(begin(id), one), { concurrency: "unbounded" })

      const acknowledged = new Map<SessionID, Array<string>>(ids.map((id) => [id, []]))
      let [count, isDone] = [0, false]
      let reached = Deferred.unsafeMake<void>(yield* Effect.fiberId)
      const publish = (id: SessionID, index: number) => {
        let n = 0
        const once = Effect.gen(function* () {
          const title = `${index} ${(n += 1)}`
          const exit = yield* Effect.exit(logOf(index).append(id, [renamed(title)]))
          if (Exit.isSuccess(exit)) acknowledged.get(id)?.push(title)
          count += 1
          if (count % between === 0) Deferred.unsafeDone(reached, Effect.void)
        })
        return Effect.repeat(once, { until: () => isDone })
      }
      const publishing = yield* Effect.fork(Effect.forEach(ids, publish, { concurrency: "unbounded", discard: true }))
      for (let crash = 0; crash < crashes; crash += 1) {
        yield* Deferred.await(reached)
        reached = yield* Deferred.make<void>()
        yield* Effect.promise(() => PostgresServer.crash(folder))
      }
      yield* Deferred.await(reached)
      isDone = true
      yield* publishing

      const reader = yield* node
      const positions: Array<number> = []
      for (const id of ids) {
        const events = yield* Effect.provide(readAll(id), reader)
        const titles = events.flatMap(({ data }) =>
          "title" in data && typeof data.title === "string" ? [data.title] : []
        )
        assert.strictEqual(new Set(titles).size, titles.length, "an append is stored twice")
        assert.includeMembers(titles, acknowledged.get(id) ?? [])
        positions.push(...events.map(({ position }) => position))
      }
      assert.deepStrictEqual(
        positions.toSorted((a, b) => a - b),
        Array.from(positions, (_, index) => index + 1)
      )
      assert.isAbove([...acknowledged.values()].flat().length, crashes * between * 0.5)
    })
  )
})
