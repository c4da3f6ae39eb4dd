/** The record of live shells in a session: what is stored, when, and what is refused. */
import { SqlClient } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import type { SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import { EventLog } from "../../../packages/log/src/log/EventLog.ts"
import { tableNames } from "../../../packages/log/src/projection/Tables.ts"
import { CommandBlocked } from "../../../packages/shell/src/domain/ShellError.ts"
import { isShellEvent } from "../../../packages/shell/src/record/ShellList.ts"
import * as ShellRecord from "../../../packages/shell/src/record/ShellRecord.ts"
import { memoryLog } from "../../support/Database.ts"
import { begin, contents, created, readAll, session } from "../../support/Logs.ts"
import { fill, pruned, turns } from "../../support/Pruning.ts"

const result = { stdout: "out", stderr: "", exit_code: 0, duration_ms: 3, cwd: "/work", truncated: false }
const opened = (shellID = "1_local") => ShellRecord.opened(shellID, { transport: "local" }, "/work")
const executed = (command: string, shellID = "1_local") => ShellRecord.executed(shellID, command, result)

const write = (...facts: ReadonlyArray<ShellRecord.ShellFact>) =>
  Effect.flatMap(ShellRecord.ShellRecord, (record) => Effect.forEach(facts, record.write, { discard: true }))

/** Records as another process does: with a record of its own. */
const inSession = <A, E, R>(sessionID: SessionID, effect: Effect.Effect<A, E, R>) =>
  Effect.provide(effect, ShellRecord.layer({ sessionID }))

/** The types and shells of the recorded events, and the reasons of closes. */
const story = (sessionID: SessionID, after = -1) =>
  Effect.map(readAll(sessionID, after), (events) =>
    events.filter(isShellEvent).map(({ data, type }) => {
      const reason = type === "session.next.shell.closed" && "reason" in data ? ` ${data.reason}` : ""
      return `${type.replace("session.next.shell.", "")} ${data.shellID}${reason}`
    })
  )

it.effect("SL-100: facts are stored in order before `write` returns, and change no row of the session", () =>
  Effect.gen(function* () {
    const id = session()
    yield* begin(id)
    const before = yield* contents
    const facts = [
      opened(),
      executed("make"),
      ShellRecord.blocked("1_local", "rm -rf /", new CommandBlocked({ policy: "operator", reason: "denied" })),
      ShellRecord.checkpointed("1_local", "cp_1"),
      ShellRecord.restored("1_local", "cp_1", 2),
      ShellRecord.closed("1_local", "destroyed")
    ]
    yield* inSession(
      id,
      Effect.gen(function* () {
        for (const [index, fact] of facts.entries()) {
          yield* write(fact)
          const last = (yield* readAll(id)).at(-1)
          assert.deepStrictEqual([last?.seq, last?.type, last?.data], [index + 1, fact.type, fact.data])
        }
      })
    )
    const after = yield* contents
    for (const table of tableNames) assert.deepStrictEqual(after[table], before[table], table)
  }).pipe(Effect.provide(memoryLog))
)

it.effect("SL-103: without a database every fact is taken", () =>
  Effect.provide(write(opened(), executed("make"), ShellRecord.closed("1_local", "exited")), ShellRecord.none)
)

it.effect("SL-104: the first fact closes the shells that an earlier process left open as lost, in its append", () =>
  Effect.gen(function* () {
    const id = session()
    yield* begin(id)
    yield* inSession(
      id,
      write(opened("1_local"), opened("2_local"), opened("3_local"), ShellRecord.closed("2_local", "reaped"))
    )
    // More than a page of events, so that a later page has the second process's beginning.
    const log = yield* EventLog
    yield* Effect.forEach(Array.from({ length: 6 }), () =>
      log.append(id, [executed("a", "3_local"), ...Array.from({ length: 99 }, () => executed("a", "3_local"))])
    )
    const before = yield* log.latest(id)
    const appends: Array<number> = []
    yield* Effect.scoped(
      Effect.gen(function* () {
        yield* log.listen((events) => Effect.sync(() => void appends.push(events.length)))
        yield* inSession(id, write(opened("1_local"), executed("b"), ShellRecord.closed("1_local", "destroyed")))
      })
    )
    assert.deepStrictEqual(yield* story(id, before), [
      "closed 1_local lost",
      "closed 3_local lost",
      "opened 1_local",
      "executed 1_local",
      "closed 1_local destroyed"
    ])
    assert.deepStrictEqual(appends, [3, 1, 1])
    // Everything is closed: the next process closes nothing.
    const end = yield* log.latest(id)
    yield* inSession(id, write(opened("1_local")))
    assert.deepStrictEqual(yield* story(id, end), ["opened 1_local"])
  }).pipe(Effect.provide(memoryLog))
)

it.effect("SL-104: facts that are written at once find each shell that was left, once", () =>
  Effect.gen(function* () {
    const id = session()
    yield* begin(id)
    yield* inSession(id, write(opened("left")))
    yield* inSession(
      id,
      Effect.forEach(["a", "b", "c", "d"], (shellID) => write(opened(shellID)), { concurrency: "unbounded" })
    )
    const [, lost, ...rest] = yield* story(id)
    assert.strictEqual(lost, "closed left lost")
    assert.deepStrictEqual([...rest].sort(), ["opened a", "opened b", "opened c", "opened d"])
  }).pipe(Effect.provide(memoryLog))
)

it.effect("SL-107: a record of its own creates its session with the first fact, once, and none without a fact", () =>
  Effect.gen(function* () {
    const log = yield* EventLog
    const own = ShellRecord.layerOwn({ location: { directory: "/work" } })
    const all = Effect.map(log.readFeed(), ({ events }) => events)
    yield* Effect.provide(write(), own)
    assert.deepStrictEqual(yield* all, [])
    yield* Effect.provide(
      Effect.forEach(["a", "b", "c"], (shellID) => write(opened(shellID)), { concurrency: "unbounded" }),
      own
    )
    const [first, ...rest] = yield* all
    assert.deepInclude(first, { type: "session.created", seq: 0 })
    assert.deepStrictEqual(first?.data, { location: { directory: "/work" }, title: "Live shells" })
    assert.deepStrictEqual(
      rest.map(({ sessionID, type }) => [sessionID, type]),
      rest.map(() => [first?.sessionID, "session.next.shell.opened"])
    )
    assert.strictEqual(rest.length, 3)
  }).pipe(Effect.provide(memoryLog))
)

it.effect("SL-108: a fact about a shell of a removed or unknown session is refused, and creates nothing", () =>
  Effect.gen(function* () {
    const log = yield* EventLog
    const [id, unknown] = [session(), session()]
    yield* begin(id)
    const late = yield* inSession(
      id,
      Effect.gen(function* () {
        yield* write(opened())
        yield* log.remove(id)
        return yield* Effect.flip(write(executed("make")))
      })
    )
    const never = yield* Effect.flip(inSession(unknown, write(opened())))
    for (const [error, sessionID] of [
      [late, id],
      [never, unknown]
    ] as const) {
      assert.deepInclude(error, { _tag: "ShellRecordFailed", sessionID, reason: "no session" })
      assert.strictEqual(yield* log.latest(sessionID), -1)
    }
  }).pipe(Effect.provide(memoryLog))
)

it.effect("SL-580: a session of its own that was removed is created again, with the openings of the open shells", () =>
  Effect.gen(function* () {
    const log = yield* EventLog
    yield* Effect.gen(function* () {
      const { sessionID = session() } = yield* ShellRecord.ShellRecord
      yield* write(opened("a"), opened("b"), executed("make", "a"), ShellRecord.closed("b", "destroyed"))
      yield* log.remove(sessionID)
      yield* Effect.forEach(["one", "two"], (command) => write(executed(command, "a")), { concurrency: "unbounded" })
      yield* write(opened("c"))
      const [first, second] = yield* readAll(sessionID)
      assert.deepStrictEqual(first?.data, { location: { directory: "/work" }, title: "Live shells" })
      assert.deepStrictEqual(second?.data, opened("a").data)
      assert.deepStrictEqual(yield* story(sessionID), ["opened a", "executed a", "executed a", "opened c"])
    }).pipe(Effect.provide(ShellRecord.layerOwn({ location: { directory: "/work" } })))
  }).pipe(Effect.provide(memoryLog))
)

it.effect("SL-108: a fact that cannot be stored says why, and the next one is stored", () =>
  Effect.gen(function* () {
    const id = session()
    yield* begin(id)
    const sql = yield* SqlClient.SqlClient
    yield* inSession(
      id,
      Effect.gen(function* () {
        const invalid = yield* Effect.flip(write(ShellRecord.restored("1_local", "cp_1", -1)))
        assert.strictEqual(invalid.reason, "invalid")
        yield* sql`PRAGMA query_only = 1`
        assert.strictEqual((yield* Effect.flip(write(opened()))).reason, "unavailable")
        yield* sql`PRAGMA query_only = 0`
        yield* write(opened())
      })
    )
    assert.deepStrictEqual(yield* story(id), ["opened 1_local"])
  }).pipe(Effect.provide(memoryLog))
)

it.effect(
  "SL-109: a session that only records shells is pruned at the end of a shell, also while others are open",
  () =>
    Effect.gen(function* () {
      const id = session()
      yield* fill(id, [
        [created],
        [opened("1_local"), opened("2_local"), executed("a"), ShellRecord.closed("1_local", "reaped")],
        [executed("b", "2_local"), executed("c", "2_local")]
      ])
      const { cut } = yield* pruned(id)
      assert.strictEqual(cut.to, 4)
      assert.deepStrictEqual(yield* story(id, cut.to), ["executed 2_local", "executed 2_local"])
      // The shell that is still open is found without its opening.
      yield* inSession(id, write(opened("5_local")))
      assert.deepStrictEqual((yield* story(id, 6)).slice(0, 2), ["closed 2_local lost", "opened 5_local"])
    }).pipe(Effect.provide(memoryLog))
)

it.effect("SL-109: a live shell's end in a running activity is no boundary", () =>
  Effect.gen(function* () {
    const id = session()
    const [one = [], two = []] = turns(2)
    yield* fill(id, [[created], one, two.slice(0, -1), [opened(), ShellRecord.closed("1_local", "destroyed")]])
    const { cut } = yield* pruned(id)
    assert.strictEqual(cut.to, one.length)
  }).pipe(Effect.provide(memoryLog))
)

it.effect("SL-100: a tail of the session gets the facts", () =>
  Effect.gen(function* () {
    const id = session()
    yield* begin(id)
    const log = yield* EventLog
    const tail = yield* log.tail({ sessionID: id, after: 0 }).pipe(Stream.take(2), Stream.runCollect, Effect.fork)
    yield* inSession(id, write(opened(), executed("make")))
    assert.deepStrictEqual(
      Array.from(yield* tail.await.pipe(Effect.flatten), ({ type }) => type),
      ["session.next.shell.opened", "session.next.shell.executed"]
    )
  }).pipe(Effect.provide(memoryLog))
)
