/** Appends in one synchronous transaction: what runs beside it, what it waits for, and what follows a failed one. */
import { SqlClient } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Either, Fiber, Option, Struct } from "effect"
import { draft } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import * as SqlHook from "../../packages/log/src/log/SqlHook.ts"
import { immediately } from "../../packages/log/src/storage/Transaction.ts"
import { isAt } from "../../packages/log/src/store/SessionChecks.ts"
import { stores, temporaryDatabase } from "../support/Database.ts"
import { Faults, faultyLog } from "../support/FaultySql.ts"
import { begin, created, readAll, renamed, session } from "../support/Logs.ts"

it.scopedLive("LG-47: no other fiber runs between the first statement of waiting appends and their commit", () =>
  Effect.gen(function* () {
    const filename = yield* temporaryDatabase
    yield* Effect.gen(function* () {
      const [log, faults] = [yield* EventLog, yield* Faults]
      const ids = Array.from({ length: 20 }, () => session())
      yield* Effect.forEach(ids, (id) => begin(id), { discard: true })
      let rounds = 0
      const other = yield* Effect.fork(
        Effect.forever(
          Effect.zipRight(
            Effect.yieldNow(),
            Effect.sync(() => rounds++)
          )
        )
      )
      const seen: Array<readonly [statement: string, round: number]> = []
      faults.fails = (_, text) => {
        seen.push([text, rounds])
        return false
      }
      const before = rounds
      yield* Effect.forEach(ids, (id) => log.append(id, [renamed("a")]), { concurrency: "unbounded" })
      faults.fails = () => false
      yield* Fiber.interrupt(other)
      assert.deepStrictEqual([seen[0]?.[0], seen.at(-1)?.[0]], ["BEGIN IMMEDIATE", "COMMIT"])
      assert.strictEqual(seen.filter(([text]) => text === "COMMIT").length, 1)
      assert.strictEqual(new Set(seen.map(([, round]) => round)).size, 1)
      assert.isAbove(rounds, before)
    }).pipe(Effect.provide(faultyLog(filename)))
  })
)

it.scopedLive(
  "LG-47: a check that refuses an append leaves the appends beside it stored, and its own without a trace",
  () =>
    Effect.gen(function* () {
      const filename = yield* temporaryDatabase
      yield* Effect.gen(function* () {
        const [log, faults] = [yield* EventLog, yield* Faults]
        const ids = [session(), session(), session()] as const
        yield* Effect.forEach(ids, (id) => begin(id), { discard: true })
        const checked: Array<ReadonlyArray<number>> = []
        const refuses = SqlHook.check((statements, id, events) => {
          const rows = statements.all<{ readonly title: string }>("SELECT title FROM session WHERE id = ?", [id])
          checked.push(events.map(({ seq }) => seq))
          return rows[0]?.title === "refused" ? "no" : undefined
        })
        faults.ran = []
        const outcomes = yield* Effect.forEach(
          ids,
          (id, index) =>
            Effect.either(log.append(id, [renamed(index === 1 ? "refused" : "kept")], { commit: refuses })),
          { concurrency: "unbounded" }
        )
        assert.deepStrictEqual(outcomes.map(Either.isRight), [true, false, true])
        assert.deepStrictEqual(outcomes[1], Either.left("no"))
        assert.deepStrictEqual(checked.slice(0, 2), [[1], [1]])
        const brackets = faults.ran.filter((text) => /^(?:BEGIN|COMMIT|ROLLBACK)/.test(text))
        assert.deepStrictEqual(brackets.slice(0, 2), ["BEGIN IMMEDIATE", "ROLLBACK"])
        const titles = yield* Effect.forEach(ids, (id) =>
          Effect.map(readAll(id), (events) =>
            events.flatMap((event) => (event.type === "session.next.renamed" ? [event.data.title] : []))
          )
        )
        assert.deepStrictEqual(titles, [["kept"], [], ["kept"]])
      }).pipe(Effect.provide(faultyLog(filename)))
    })
)

for (const [store, layer] of Object.entries(stores)) {
  it.layer(layer)(`direct appends, ${store}`, (it) => {
    it.effect(
      "LG-48: appends wait while a transaction holds the connection, are not part of it, and keep their order",
      () =>
        Effect.gen(function* () {
          const [log, sql, ids] = [yield* EventLog, yield* SqlClient.SqlClient, [session(), session()] as const]
          for (const id of ids) yield* begin(id)
          const [entered, gate] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
          const open = yield* Effect.fork(
            immediately(sql)(
              Effect.gen(function* () {
                yield* sql`UPDATE session SET agent = 'undone'`
                yield* Deferred.succeed(entered, undefined)
                yield* Deferred.await(gate)
                return yield* Effect.fail("undone")
              })
            )
          )
          yield* Deferred.await(entered)
          const appends: Array<Fiber.RuntimeFiber<unknown, unknown>> = []
          for (const title of ["a", "b", "c"]) {
            for (const id of ids) appends.push(yield* Effect.fork(log.append(id, [renamed(title)])))
            for (let n = 0; n < 10; n++) yield* Effect.yieldNow()
          }
          assert.deepStrictEqual(
            appends.map((fiber) => fiber.unsafePoll()),
            appends.map(() => null)
          )
          yield* Deferred.succeed(gate, undefined)
          assert.strictEqual(yield* Effect.flip(Fiber.join(open)), "undone")
          yield* Effect.forEach(appends, Fiber.join)
          for (const id of ids) {
            const titles = (yield* readAll(id)).flatMap((event) =>
              event.type === "session.next.renamed" ? [event.data.title] : []
            )
            assert.deepStrictEqual(titles, ["a", "b", "c"])
          }
          assert.deepStrictEqual(yield* sql`SELECT count(agent) AS n FROM session`, [{ n: 0 }])
        })
    )
  })
}

it.scopedLive(
  "LG-48: a synchronous transaction that is refused is rolled back once, and its batch written by halves",
  () =>
    Effect.gen(function* () {
      const filename = yield* temporaryDatabase
      yield* Effect.gen(function* () {
        const [log, faults, bad] = [yield* EventLog, yield* Faults, session()]
        const ids = Array.from({ length: 3 }, () => session())
        faults.ran = []
        const outcomes = yield* Effect.forEach(
          [ids, bad].flat(),
          (id) => {
            return Effect.either(log.append(id, [id === bad ? renamed("no session") : created]))
          },
          { concurrency: "unbounded" }
        )
        assert.deepStrictEqual(outcomes.map(Struct.get("_tag")), ["Right", "Right", "Right", "Left"])
        const brackets = faults.ran.filter((text) => /^(?:BEGIN|COMMIT|ROLLBACK)/.test(text))
        assert.deepStrictEqual(brackets.slice(0, 3), ["BEGIN IMMEDIATE", "ROLLBACK", "BEGIN IMMEDIATE"])
        assert.strictEqual(brackets.at(-1), "COMMIT")
        assert.strictEqual(brackets.filter((text) => text === "BEGIN IMMEDIATE").length, 2)
      }).pipe(Effect.provide(faultyLog(filename)))
    })
)

const away = draft("session.next.moved", { location: { directory: "/elsewhere" } })

it.scopedLive(
  "LG-49: an append alone in its transaction has its condition read with its head, in no other statement",
  () =>
    Effect.gen(function* () {
      const filename = yield* temporaryDatabase
      yield* Effect.gen(function* () {
        const [log, faults, id] = [yield* EventLog, yield* Faults, session()]
        yield* begin(id)
        // The first event of a type also stores its name.
        yield* log.append(id, [renamed("first")])
        const here = isAt({ directory: "/work" })
        faults.ran = []
        yield* log.append(id, [renamed("checked")], { commit: here })
        assert.deepStrictEqual(
          faults.ran.filter((text) => text.startsWith("SELECT (SELECT location")),
          []
        )
        yield* log.append(id, [away])
        assert.deepInclude(yield* Effect.flip(log.append(id, [renamed("late")], { commit: here })), {
          _tag: "LocationLeft",
          sessionID: id
        })
        assert.deepStrictEqual(
          (yield* readAll(id)).map(({ seq, type }) => [seq, type]),
          [
            [0, "session.created"],
            [1, "session.next.renamed"],
            [2, "session.next.renamed"],
            [3, "session.next.moved"]
          ]
        )
      }).pipe(Effect.provide(faultyLog(filename)))
    })
)

it.scopedLive("LG-49: a condition sees what an append of the same transaction changes", () =>
  Effect.gen(function* () {
    const filename = yield* temporaryDatabase
    yield* Effect.gen(function* () {
      const [log, id] = [yield* EventLog, session()]
      yield* begin(id)
      const fenced = log.append(id, [renamed("late")], { commit: isAt({ directory: "/work" }) })
      const [, refused] = yield* Effect.all([log.append(id, [away]), Effect.either(fenced)], {
        concurrency: "unbounded"
      })
      assert.deepInclude(Either.getLeft(refused).pipe(Option.getOrThrow), { _tag: "LocationLeft", sessionID: id })
      assert.deepStrictEqual((yield* readAll(id)).at(-1)?.type, "session.next.moved")
    }).pipe(Effect.provide(faultyLog(filename)))
  })
)
