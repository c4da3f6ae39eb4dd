/** What an append promises, on every store. */
import { SqlClient } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import Sqlite from "better-sqlite3"
import { Array as Arr, Cause, Effect, Exit, Fiber, Option, TestClock } from "effect"
import { draft } from "../../packages/log/src/events/SessionEvents.ts"
import type { Projector } from "../../packages/log/src/log/Appends.ts"
import { type CommitHook, CommitHookTypeId, EventLog, EventRefused } from "../../packages/log/src/log/EventLog.ts"
import * as SqlHook from "../../packages/log/src/log/SqlHook.ts"
import { ReadSql } from "../../packages/log/src/storage/Database.ts"
import { logAt, stores, temporaryDatabase } from "../support/Database.ts"
import { projectorContract } from "./contract/Projectors.ts"
import { heldAppend, rounds } from "../support/Holding.ts"
import { admitted, begin, contents, created, message, readAll, renamed, session } from "../support/Logs.ts"

for (const [store, layer] of Object.entries(stores)) {
  it.layer(layer)(`append, ${store}`, (it) => {
    it.effect("EV-1: an append stores its events, their projections and what its hook wrote, and returns them", () =>
      Effect.gen(function* () {
        const [log, sql, id, input] = [yield* EventLog, yield* SqlClient.SqlClient, session(), message()]
        const hook = SqlHook.check((statements) => {
          statements.run("INSERT INTO session_instruction SELECT session, 1 FROM event_sequence WHERE session_id = ?", [
            id
          ])
          return undefined
        })
        const stored = yield* log.append(id, [created, admitted(input)], { commit: hook })
        assert.deepStrictEqual(yield* readAll(id), stored)
        const inbox =
          yield* sql`SELECT id, admitted_seq FROM session_input WHERE session = (SELECT session FROM event_sequence WHERE session_id = ${id})`
        assert.deepStrictEqual(inbox, [{ id: input, admitted_seq: 1 }])
        const written =
          yield* sql`SELECT seq FROM session_instruction WHERE session = (SELECT session FROM event_sequence WHERE session_id = ${id})`
        assert.deepStrictEqual(written, [{ seq: 1 }])
        const heads = yield* sql`SELECT seq FROM event_sequence WHERE session_id = ${id}`
        assert.deepStrictEqual(heads, [{ seq: 1 }])
      })
    )

    it.effect("EV-1: an append cannot be interrupted half-way: its caller's interruption waits for the outcome", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, session()]
        const { appending, open } = yield* heldAppend(id, [created])
        const interrupting = yield* Effect.fork(Fiber.interrupt(appending))
        yield* rounds
        assert.isNull(interrupting.unsafePoll())
        yield* open
        yield* TestClock.adjust("1 second")
        yield* Fiber.await(interrupting)
        assert.strictEqual(yield* log.latest(id), 0)
      })
    )

    it.effect("EV-2: a hook that fails, or dies, leaves nothing and fails its own caller only", () =>
      Effect.gen(function* () {
        const [log, id, neighbour] = [yield* EventLog, session(), session()]
        yield* begin(id)
        const before = yield* contents
        const broken = new Error("broken")
        const fails = SqlHook.check(() => "no" as const)
        const dies = SqlHook.check(() => {
          throw broken
        })
        const failed = yield* Effect.exit(log.append(id, [renamed("a")], { commit: fails }))
        assert.deepStrictEqual(failed, Exit.fail("no" as const))
        const died = yield* Effect.exit(log.append(id, [renamed("b")], { commit: dies }))
        assert.deepStrictEqual(died, Exit.die(broken))
        assert.deepStrictEqual(yield* contents, before)
        const [bad, good] = yield* Effect.all(
          [
            Effect.exit(log.append(id, [renamed("c")], { commit: fails })),
            Effect.exit(log.append(neighbour, [created]))
          ],
          { concurrency: "unbounded" }
        )
        assert.deepStrictEqual(bad, Exit.fail("no" as const))
        assert.isTrue(Exit.isSuccess(good))
        assert.strictEqual(yield* log.latest(id), 0)
      })
    )

    it.effect(
      "LG-40: a statement of a hook that fails fails the append as the database's failure; nothing is stored",
      () =>
        Effect.gen(function* () {
          const [log, id] = [yield* EventLog, session()]
          yield* begin(id)
          const broken = SqlHook.check((statements) => void statements.all("SELECT * FROM no_such_table", []))
          const error = yield* Effect.flip(log.append(id, [renamed("a")], { commit: broken }))
          assert.deepInclude(error, { _tag: "LogUnavailable", operation: "append" })
          assert.strictEqual(yield* log.latest(id), 0)
        })
    )

    it.effect("LG-40: a hook of another kind of log is a defect, and the append stores nothing", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, session()]
        yield* begin(id)
        const foreign: CommitHook = { [CommitHookTypeId]: { _E: (error: never) => error } }
        const exit = yield* Effect.exit(log.append(id, [renamed("a")], { commit: foreign }))
        assert.isTrue(Exit.isFailure(exit) && Cause.isDie(exit.cause))
        assert.strictEqual(yield* log.latest(id), 0)
      })
    )

    it.effect("EV-3: the hook sees the sequence numbers and the projections of its own events", () =>
      Effect.gen(function* () {
        const [log, id, input] = [yield* EventLog, session(), message()]
        const seen: Array<unknown> = []
        const commit = SqlHook.check((statements, _, events) => {
          seen.push(events.map(({ seq }) => seq))
          seen.push(statements.all("SELECT title FROM session WHERE id = ?", [id]))
          seen.push(statements.all("SELECT admitted_seq FROM session_input WHERE id = ?", [input]))
          seen.push(statements.all("SELECT seq FROM event_sequence WHERE session_id = ?", [id]))
          return undefined
        })
        yield* log.append(id, [created, renamed("mine"), admitted(input)], { commit })
        assert.deepStrictEqual(seen, [[0, 1, 2], [{ title: "mine" }], [{ admitted_seq: 2 }], [{ seq: 2 }]])
      })
    )

    it.effect(
      "EV-9: a long answer costs its own length: stored bytes grow with what is new, not with what came before",
      () =>
        Effect.gen(function* () {
          const [log, sql, id, assistant] = [yield* EventLog, yield* SqlClient.SqlClient, session(), message()]
          const model = { providerID: "p", id: "m" }
          yield* log.append(id, [
            created,
            draft("session.next.step.started", { assistantMessageID: assistant, agent: "build", model })
          ])
          const text = "x".repeat(1000)
          for (let n = 0; n < 20; n++) {
            const textID = `t${n}`
            yield* log.append(id, [
              draft("session.next.text.started", { assistantMessageID: assistant, textID }),
              draft("session.next.text.ended", { assistantMessageID: assistant, textID, text })
            ])
          }
          const [bytes] = yield* sql<{ readonly last: number; readonly first: number }>`
          SELECT max(length(data)) FILTER (WHERE seq > 38) AS last, max(length(data)) FILTER (WHERE seq < 4) AS first
          FROM event WHERE session = (SELECT session FROM event_sequence WHERE session_id = ${id})`
          assert.isAtMost(bytes?.last ?? Infinity, (bytes?.first ?? 0) + 2)
          assert.strictEqual(JSON.stringify(yield* contents).split(text).length - 1, 20)
        })
    )

    it.effect("EV-10: removing a session deletes every row of it in one go, and leaves its neighbours alone", () =>
      Effect.gen(function* () {
        const [log, id, other] = [yield* EventLog, session(), session()]
        yield* begin(other, 3)
        const before = yield* contents
        const [input, assistant] = [message(), message()]
        yield* log.append(id, [
          created,
          admitted(input),
          draft("session.next.prompt.promoted", { messageID: input, prompt: { text: "hello" }, timeCreated: 1 }),
          draft("session.next.step.started", {
            assistantMessageID: assistant,
            agent: "build",
            model: { providerID: "p", id: "m" }
          }),
          draft("session.next.text.started", { assistantMessageID: assistant, textID: "t" }),
          draft("session.next.instructions.discovered", { paths: ["/a/AGENTS.md"] })
        ])
        assert.isTrue(yield* log.remove(id))
        assert.deepStrictEqual(yield* contents, before)
        assert.isFalse(yield* log.remove(id))
        assert.strictEqual((yield* Effect.flip(log.read({ sessionID: id })))._tag, "SessionNotFound")
      })
    )

    it.effect("LG-4: an append with a stale owner token is refused in its transaction", () =>
      Effect.gen(function* () {
        const [log, sql, id] = [yield* EventLog, yield* SqlClient.SqlClient, session()]
        yield* begin(id)
        yield* sql`UPDATE event_sequence SET owner_id = 'one', owner_epoch = 4 WHERE session_id = ${id}`
        const owner = { ownerID: "one", epoch: 4 }
        yield* log.append(id, [renamed("as owner")], { owner })
        for (const stale of [
          { ownerID: "one", epoch: 3 },
          { ownerID: "two", epoch: 4 }
        ]) {
          const refused = yield* Effect.flip(log.append(id, [renamed("stale")], { owner: stale }))
          assert.deepInclude(refused, { _tag: "OwnerLost", ...stale })
        }
        assert.strictEqual(yield* log.latest(id), 1)
      })
    )
  })
}

it.scoped("LG-6: appends that wait together share one commit, and each gets its own answer", () =>
  Effect.gen(function* () {
    const log = yield* EventLog
    const batches: Array<number> = []
    yield* log.append(session("warm"), [created])
    const { appending: first, open } = yield* heldAppend(session("held"), [created])
    const waiting = yield* Effect.forEach(Array.from({ length: 64 }), (_, n) =>
      Effect.fork(
        log.append(session(`s${n}`), [created], {
          commit: SqlHook.check((statements) => {
            const [row] = statements.all<{ readonly n: number }>("SELECT count(*) AS n FROM session", [])
            batches.push(row?.n ?? 0)
            return undefined
          })
        })
      )
    )
    yield* rounds
    yield* open
    yield* TestClock.adjust("1 second")
    yield* Fiber.join(first)
    const answers = yield* Effect.forEach(waiting, Fiber.join)
    assert.deepStrictEqual(
      answers.map(([event]) => String(event.sessionID)),
      Array.from({ length: 64 }, (_, n) => `ses_s${n}`)
    )
    // Every hook saw all 64 sessions: they were written together.
    assert.deepStrictEqual(
      batches,
      Array.from({ length: 64 }, () => 66)
    )
  }).pipe(Effect.provide(stores.file))
)

it.scoped(
  "LG-6: publishers that append whenever they are answered share every commit, after one that was alone too",
  () => {
    const commits: Array<number> = []
    const counting: Projector = {
      name: "counting",
      project: (events) => Effect.sync(() => void commits.push(events.length))
    }
    return Effect.gen(function* () {
      const log = yield* EventLog
      yield* log.append(session("alone"), [created])
      // Every second one appends a round later than the others.
      const publish = (n: number) => {
        const again = log.append(session(`s${n}`), [renamed("again")])
        const later = n % 2 === 0 ? Effect.zipRight(Effect.yieldNow(), again) : again
        return Effect.zipRight(log.append(session(`s${n}`), [created]), Effect.replicateEffect(later, 3))
      }
      yield* Effect.forEach(Arr.range(1, 8), publish, { concurrency: "unbounded" })
      assert.deepStrictEqual(commits, [1, 8, 8, 8, 8])
    }).pipe(Effect.provide(logAt(":memory:", { projectors: [counting] })))
  }
)

it.scoped("LG-6: further projectors run in their order, after the core's, in the same transaction", () => {
  const order: Array<string> = []
  const projector = (name: string): Projector => ({
    name,
    project: (events) =>
      name === "second" && events.some(({ seq }) => seq === 1)
        ? new EventRefused({ sessionID: session("p"), table: name, details: "no" })
        : Effect.sync(() => void order.push(name))
  })
  return Effect.gen(function* () {
    const log = yield* EventLog
    const read = yield* ReadSql
    yield* log.append(session("p"), [created])
    assert.deepStrictEqual(order, ["first", "second"])
    const refused = yield* Effect.flip(log.append(session("p"), [renamed("x")]))
    assert.deepInclude(refused, { _tag: "EventRefused", table: "second" })
    assert.deepStrictEqual(yield* read`SELECT title FROM session`, [{ title: null }])
  }).pipe(Effect.provide(logAt(":memory:", { projectors: [projector("first"), projector("second")] })))
})

projectorContract((options) => logAt(":memory:", options))

it.scoped("LG-99: a projector that waits for something else than statements is a defect, and stores nothing", () =>
  Effect.gen(function* () {
    const log = yield* EventLog
    const exit = yield* Effect.exit(log.append(session("p"), [created]))
    assert.isTrue(Exit.isFailure(exit) && Cause.isDie(exit.cause))
    assert.strictEqual(yield* log.latest(session("p")), -1)
  }).pipe(
    Effect.provide(logAt(":memory:", { projectors: [{ name: "slow", project: () => Effect.promise(async () => {}) }] }))
  )
)

/** A log whose file another connection has locked for writing. The log's own connection does not wait inside of SQLite. */
const besideLock = <A, E>(
  use: (log: EventLog["Type"], id: ReturnType<typeof session>, other: Sqlite.Database) => Effect.Effect<A, E>
) =>
  Effect.gen(function* () {
    const [filename, id] = [yield* temporaryDatabase, session()]
    yield* Effect.gen(function* () {
      yield* begin(id)
      const sql = yield* SqlClient.SqlClient
      yield* sql`PRAGMA busy_timeout = 0`
      const other = new Sqlite(filename)
      other.exec("BEGIN IMMEDIATE")
      yield* use(yield* EventLog, id, other)
      other.close()
    }).pipe(Effect.provide(logAt(filename)))
  })

it.scoped("EV-11: an append waits for the lock of another connection, and is stored when it is free", () =>
  besideLock((log, id, other) =>
    Effect.gen(function* () {
      const appending = yield* Effect.fork(log.append(id, [renamed("waits")]))
      yield* TestClock.adjust("5 seconds")
      assert.isTrue(Option.isNone(yield* Fiber.poll(appending)))
      assert.strictEqual(yield* log.latest(id), 0)
      other.exec("ROLLBACK")
      yield* TestClock.adjust("1 second")
      assert.strictEqual((yield* Fiber.join(appending))[0]?.seq, 1)
    })
  )
)

it.scoped("EV-11: an append that waited for ten seconds fails with a typed busy error, and stores nothing", () =>
  besideLock((log, id, other) =>
    Effect.gen(function* () {
      const appending = yield* Effect.fork(Effect.flip(log.append(id, [renamed("waits")])))
      yield* TestClock.adjust("11 seconds")
      assert.deepInclude(yield* Fiber.join(appending), { _tag: "LogUnavailable", reason: "busy" })
      other.exec("ROLLBACK")
      assert.strictEqual(yield* log.latest(id), 0)
    })
  )
)
