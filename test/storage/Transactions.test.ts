/** What a transaction does when the database fails at its edges: at its beginning, its commit and its rollback. */
import { SqlClient, SqlError } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import { Cause, Effect, Exit, Fiber, Layer, Option, Queue, Stream } from "effect"
import * as SafeFiles from "../../packages/files/src/disk/SafeFiles.ts"
import * as Ledger from "../../packages/files/src/record/Ledger.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import * as Database from "../../packages/log/src/storage/Database.ts"
import * as Transaction from "../../packages/log/src/storage/Transaction.ts"
import * as EventLoop from "../../packages/log/src/support/EventLoop.ts"
import { SessionStore } from "../../packages/log/src/store/SessionStore.ts"
import * as SqlSessionStore from "../../packages/log/src/store/SqlSessionStore.ts"
import { fileLog, logAt, temporaryDatabase, temporaryFolder } from "../support/Database.ts"
import { Faults, faultyLog } from "../support/FaultySql.ts"
import { begin, readAll, renamed, session } from "../support/Logs.ts"
import { smallDisk } from "../support/SmallDisk.ts"

const faulty = Layer.unwrapScoped(Effect.map(temporaryDatabase, (filename) => faultyLog(filename)))

const kinds = { immediately: Transaction.immediately, snapshot: Transaction.snapshot }

it.layer(faulty)("transactions", (it) => {
  for (const [kind, transaction] of Object.entries(kinds)) {
    it.effect(`ST-16: a failing BEGIN, COMMIT or ROLLBACK of ${kind} is a typed error, and the next one works`, () =>
      Effect.gen(function* () {
        const [sql, faults] = [yield* SqlClient.SqlClient, yield* Faults]
        for (const statement of ["BEGIN", "COMMIT", "ROLLBACK"]) {
          const work: Effect.Effect<unknown, SqlError.SqlError | "undo this"> =
            statement === "ROLLBACK" ? Effect.fail("undo this" as const) : sql`SELECT 1`
          faults.fails = (_, text) => text.startsWith(statement)
          const outcome = yield* Effect.exit(transaction(sql)(work))
          faults.fails = () => false
          assert.isTrue(Exit.isFailure(outcome))
          const failure = Exit.isFailure(outcome) ? Cause.failureOption(outcome.cause) : Option.none()
          assert.deepStrictEqual(
            Option.map(failure, (error) => (error instanceof SqlError.SqlError ? "SqlError" : error)),
            Option.some(statement === "ROLLBACK" ? "undo this" : "SqlError")
          )
          assert.lengthOf(yield* transaction(sql)(sql`SELECT 1`), 1)
        }
      })
    )
  }

  it.effect("ST-16: what a failed rollback left open is undone before the next transaction begins", () =>
    Effect.gen(function* () {
      const [log, faults, id] = [yield* EventLog, yield* Faults, session()]
      yield* begin(id)
      faults.fails = (_, text) => text === "COMMIT" || text === "ROLLBACK"
      const failed = yield* Effect.flip(log.append(id, [renamed("lost")]))
      assert.deepInclude(failed, { _tag: "LogUnavailable", reason: "io" })
      faults.fails = () => false
      yield* log.append(id, [renamed("kept")])
      assert.deepStrictEqual(
        (yield* readAll(id)).map((event) => (event.type === "session.next.renamed" ? event.data.title : event.type)),
        ["session.created", "kept"]
      )
    })
  )

  it.effect("ST-400: a fiber that runs transaction after transaction lets those that wait go first", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const order: Array<string> = []
      const note = (name: string) => Effect.sync(() => void order.push(name))
      const greedy = Transaction.immediately(sql)(Effect.zipRight(EventLoop.turn, note("greedy")))
      const first = yield* Effect.fork(Effect.replicateEffect(greedy, 3))
      yield* Effect.yieldNow()
      yield* Transaction.immediately(sql)(note("transaction"))
      yield* Effect.zipRight(sql`SELECT 1`, note("statement"))
      yield* Fiber.join(first)
      assert.deepStrictEqual(order, ["greedy", "transaction", "greedy", "statement", "greedy"])
    })
  )

  it.effect("ST-4: a transaction inside another is a savepoint: its failure undoes its own writes only", () =>
    Effect.gen(function* () {
      const [sql, id] = [yield* SqlClient.SqlClient, session()]
      yield* begin(id)
      const title = (text: string) => sql`UPDATE session SET title = ${text} WHERE id = ${id}`
      yield* Transaction.immediately(sql)(
        Effect.gen(function* () {
          yield* title("outer")
          yield* Effect.ignore(Transaction.immediately(sql)(Effect.zipRight(title("inner"), Effect.fail("no"))))
          yield* Transaction.immediately(sql)(sql`UPDATE session SET agent = 'kept' WHERE id = ${id}`)
        })
      )
      assert.deepStrictEqual(yield* sql`SELECT title, agent FROM session WHERE id = ${id}`, [
        { title: "outer", agent: "kept" }
      ])
    })
  )

  it.effect("ST-16: a savepoint that cannot be undone fails the whole transaction, typed", () =>
    Effect.gen(function* () {
      const [sql, faults, id] = [yield* SqlClient.SqlClient, yield* Faults, session()]
      yield* begin(id)
      faults.fails = (_, text) => text.startsWith("ROLLBACK TO")
      const work = Transaction.immediately(sql)(
        Effect.zipRight(sql`UPDATE session SET title = 'lost' WHERE id = ${id}`, Effect.fail("no" as const))
      )
      const caught = Effect.catchIf(
        work,
        (error) => error === "no",
        () => Effect.succeed([])
      )
      const outcome = yield* Effect.flip(Transaction.immediately(sql)(caught))
      faults.fails = () => false
      assert.instanceOf(outcome, SqlError.SqlError)
      assert.deepStrictEqual(yield* sql`SELECT title FROM session WHERE id = ${id}`, [{ title: null }])
    })
  )
})

it.layer(Layer.provideMerge(SqlSessionStore.layer, fileLog))("reads", (it) => {
  it.effect("ST-4: a read inside a transaction joins it, and sees what it wrote", () =>
    Effect.gen(function* () {
      const [sql, store, id] = [yield* SqlClient.SqlClient, yield* SessionStore, session()]
      yield* begin(id)
      const { title } = yield* Transaction.immediately(sql)(
        Effect.zipRight(sql`UPDATE session SET title = 'written' WHERE id = ${id}`, store.get(id))
      )
      assert.strictEqual(title, "written")
    })
  )
})

/** Takes the room away in one way or another: a disk that is full, or, where none can be mounted, a database that is. */
const limited = Effect.gen(function* () {
  const disk = yield* smallDisk(2)
  const folder = Option.isSome(disk) ? disk.value.folder : yield* temporaryFolder
  const fill = (sql: SqlClient.SqlClient) =>
    Option.isSome(disk)
      ? disk.value.fill
      : Effect.flatMap(sql<{ readonly page_count: number }>`PRAGMA page_count`, ([row]) =>
          sql.unsafe(`PRAGMA max_page_count = ${row?.page_count}`)
        )
  const free = (sql: SqlClient.SqlClient) =>
    Option.isSome(disk) ? disk.value.free : sql.unsafe("PRAGMA max_page_count = 4294967294")
  return { disk, folder, fill, free }
})

it.scopedLive("ST-9: on a disk that is full, appends fail typed and tails stay; with room again, both go on", () =>
  Effect.gen(function* () {
    const { fill, folder, free } = yield* limited
    yield* Effect.gen(function* () {
      const [log, sql, id] = [yield* EventLog, yield* SqlClient.SqlClient, session()]
      yield* begin(id)
      const tail = yield* log.tail({ sessionID: id }).pipe(Stream.toQueueOfElements())
      const feed = yield* Effect.fork(Stream.runHead(Stream.drop(log.feed(), 1)))
      yield* Effect.flatten(Queue.take(tail))
      yield* fill(sql)
      const big = renamed("x".repeat(400_000))
      for (let n = 0; n < 3; n++) {
        // Alone and in a batch: a full disk ends the transaction by itself, with every savepoint in it.
        const failures = yield* Effect.all(
          Array.from({ length: n + 1 }, () => Effect.flip(log.append(id, [big]))),
          { concurrency: "unbounded" }
        )
        for (const failure of failures) assert.deepInclude(failure, { _tag: "LogUnavailable", reason: "disk-full" })
      }
      assert.strictEqual(yield* log.latest(id), 0)
      yield* free(sql)
      yield* log.append(id, [big])
      assert.strictEqual((yield* Effect.flatten(Queue.take(tail))).seq, 1)
      assert.strictEqual(Option.getOrThrow(yield* Fiber.join(feed)).seq, 1)
      const read = yield* Database.ReadSql
      assert.deepStrictEqual(yield* read`PRAGMA integrity_check`, [{ integrity_check: "ok" }])
    }).pipe(Effect.provide(logAt(`${folder}/full.db`)))
  })
)

it.scopedLive("ST-7: a new database on a disk that is full is refused as full, and made when there is room", () =>
  Effect.gen(function* () {
    const disk = yield* smallDisk(1)
    // Where none can be mounted, /dev/full takes no byte of any file; SQLite cannot make its journal beside it.
    const filename = Option.isSome(disk) ? `${disk.value.folder}/new.db` : "/dev/full"
    if (Option.isSome(disk)) yield* disk.value.fill
    const refused = yield* Effect.flip(Layer.build(Database.layer({ filename })))
    assert.strictEqual(refused._tag, "DatabaseError")
    if (Option.isNone(disk)) return
    assert.strictEqual(refused.reason, "disk-full")
    yield* disk.value.free
    yield* Layer.build(Database.layer({ filename }))
  })
)

it.scopedLive("FI-65: the exporter's record on a full disk fails typed, and goes on when there is room", () =>
  Effect.gen(function* () {
    const { disk, folder } = yield* limited
    if (Option.isSome(disk)) yield* disk.value.free
    const ledger = yield* Ledger.make(SafeFiles.make({ root: folder }))
    const keep = (id: string, length: number) =>
      ledger.keep(
        `home/${id}`,
        new Map(),
        {
          id,
          folder: `home/${id}`,
          index: "home/index",
          seq: 1,
          position: 1,
          first: "evt_1",
          shown: 1,
          checkpointSeq: 1,
          checkpointSize: length,
          entry: "{}",
          behind: false
        },
        "x".repeat(length)
      )
    yield* keep("a", 10)
    if (Option.isSome(disk)) {
      yield* disk.value.fill
      assert.strictEqual((yield* Effect.flip(keep("b", 400_000)))._tag, "LedgerFailed")
      assert.strictEqual((yield* Effect.flip(keep("b", 400_000)))._tag, "LedgerFailed")
      yield* disk.value.free
    }
    yield* keep("b", 400_000)
    assert.strictEqual((yield* ledger.session("b"))?.id, "b")
  })
)
