/** Read models of an application, written in each append's transaction, for each place of a log. Spec: LG-99 in specs/log.md, PG-19. */
import { SqlClient } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import { Effect, Exit, type Layer } from "effect"
import type { SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import type { Projector } from "../../../packages/log/src/log/Appends.ts"
import { EventLog, EventRefused } from "../../../packages/log/src/log/EventLog.ts"
import type { Options } from "../../../packages/log/src/log/SqlEventLog.ts"
import { begin, created, foreign, readAll, renamed, session } from "../../contracts/Samples.ts"

/** Every title that a session had. It refuses the title "no"; a title that a session had before breaks its key. */
const titles: Projector = {
  name: "titles",
  project: (events) =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      for (const event of events) {
        if (event.type !== "session.next.renamed") continue
        const { sessionID: session_id } = event
        yield* sql`INSERT INTO titles ${sql.insert({ session_id, title: event.data.title })}`
        if (event.data.title === "no")
          return yield* new EventRefused({ sessionID: session_id, table: "titles", details: "no" })
        if (event.data.title !== "undone") continue
        const undone = sql.withTransaction(Effect.zipRight(sql`DELETE FROM titles`, Effect.fail("undone")))
        yield* Effect.catchAll(undone, () => Effect.void)
      }
    })
}

const makeTable = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql`CREATE TABLE titles (session_id TEXT, title TEXT, PRIMARY KEY (session_id, title))`
)

const titlesOf = (id: SessionID) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const rows = yield* sql<{ readonly title: string }>`
      SELECT title FROM titles WHERE session_id = ${id} ORDER BY title`
    return rows.map(({ title }) => title)
  })

export const projectorContract = <R, E>(
  log: (options: Options) => Layer.Layer<EventLog | SqlClient.SqlClient | R, E>
): void => {
  it.scoped(
    "LG-99, PG-19: a projector's statements are part of the append's transaction, and so are its savepoints",
    () =>
      Effect.gen(function* () {
        yield* makeTable
        const [log, id] = [yield* EventLog, session()]
        yield* log.append(id, [created, renamed("yes"), renamed("undone")])
        const refused = yield* Effect.flip(log.append(id, [renamed("late"), renamed("no")]))
        assert.deepInclude(refused, { _tag: "EventRefused", table: "titles", details: "no" })
        const twice = yield* Effect.flip(log.append(id, [renamed("other"), renamed("yes")]))
        assert.deepInclude(twice, { _tag: "EventRefused", table: "titles" })
        assert.deepStrictEqual(yield* titlesOf(id), ["undone", "yes"])
        assert.strictEqual(yield* log.latest(id), 2)
      }).pipe(Effect.provide(log({ projectors: [titles] })))
  )

  it.scoped(
    "LG-99, LG-21: of appends that wait together those fail that a projector refuses, and the others are stored",
    () =>
      Effect.gen(function* () {
        yield* makeTable
        const [log, ids] = [yield* EventLog, Array.from({ length: 24 }, () => session())]
        yield* Effect.forEach(ids, (id) => begin(id, 0), { concurrency: "unbounded" })
        const wanted = ids.map((_, index) => (index % 8 === 3 ? "no" : index % 8 === 5 ? "twice" : "yes"))
        const exits = yield* Effect.forEach(
          ids,
          (id, index) => {
            const title = wanted[index] ?? ""
            return Effect.exit(log.append(id, title === "twice" ? [renamed(title), renamed(title)] : [renamed(title)]))
          },
          { concurrency: "unbounded" }
        )
        assert.deepStrictEqual(
          exits.map(Exit.isSuccess),
          wanted.map((title) => title === "yes")
        )
        for (const [index, id] of ids.entries()) {
          const isStored = wanted[index] === "yes"
          assert.deepStrictEqual(yield* titlesOf(id), isStored ? ["yes"] : [])
          assert.lengthOf(yield* readAll(id), isStored ? 2 : 1)
        }
      }).pipe(Effect.provide(log({ projectors: [titles] })))
  )

  it.scoped("LG-99: replayed events reach the projectors too", () =>
    Effect.gen(function* () {
      yield* makeTable
      const [log, id] = [yield* EventLog, session()]
      yield* log.append(id, [created, renamed("a"), renamed("b")])
      const [events, sql] = [yield* foreign(id), yield* SqlClient.SqlClient]
      yield* log.remove(id)
      yield* sql`DELETE FROM titles`
      yield* log.replay(events)
      assert.deepStrictEqual(yield* titlesOf(id), ["a", "b"])
    }).pipe(Effect.provide(log({ projectors: [titles] })))
  )
}
