/**
 * Method: everything the log, its tails, retention, the rebuild, the verification and the session store ask is run and
 * recorded, and SQLite is asked how it would carry out those very statements. None may walk through a table.
 */
import { dirname, join } from "node:path"
import { SqlClient } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import Sqlite from "better-sqlite3"
import { Effect, FastCheck as fc, Layer, Schedule, Stream } from "effect"
import { layer as layerQuestions, Questions } from "../../packages/core/src/session/Questions.ts"
import { SessionOwner } from "../../packages/log/src/coordination/SessionOwner.ts"
import { layer as layerOwner } from "../../packages/log/src/coordination/SqlSessionOwner.ts"
import type { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { type Draft, draft } from "../../packages/log/src/events/SessionEvents.ts"
import * as Consumer from "../../packages/log/src/consumer/Consumer.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import * as Doctor from "../../packages/log/src/maintenance/Doctor.ts"
import * as Rebuild from "../../packages/log/src/maintenance/Rebuild.ts"
import { updateStatement } from "../../packages/log/src/projection/SqlTables.ts"
import { tables } from "../../packages/log/src/projection/Tables.ts"
import { atOnce } from "../../packages/log/src/retention/Pace.ts"
import * as Retention from "../../packages/log/src/retention/Retention.ts"
import { restore } from "../../packages/log/src/retention/Retention.ts"
import { EpochStore } from "../../packages/log/src/store/EpochStore.ts"
import { Inbox } from "../../packages/log/src/store/Inbox.ts"
import { SessionStore } from "../../packages/log/src/store/SessionStore.ts"
import { layerStore } from "../../packages/log/src/Store.ts"
import { temporaryDatabase } from "../support/Database.ts"
import { Faults, faultyLog } from "../support/FaultySql.ts"
import { admitted, begin, created, foreign, message, renamed, session, unique } from "../support/Logs.ts"
import { plausibleLog } from "../support/PlausibleLogs.ts"
import { begun, pruned } from "../support/Pruning.ts"
import { recording } from "../support/Statements.ts"

/** How SQLite would carry out the statement, a line a step. */
const planOf = (database: Sqlite.Database, text: string): ReadonlyArray<string> => {
  const parameters = Array.from(text.replaceAll(/'[^']*'/g, "").matchAll(/\?/g), () => null)
  const steps = database.prepare(`EXPLAIN QUERY PLAN ${text}`).all(...parameters)
  return steps.map((step) => String(Object(step).detail))
}

/**
 * Steps that walk: lists of our own values, the list of all consumers, what a limited query found, tables of a row or two, the rows that a
 * recursion or a union of look-ups has found so far, the few names of types, and the partial indexes of what runs, what waits and what is being pruned, they may.
 */
const walks = (step: string): boolean =>
  /^SCAN (?!v$|line$|tree$|referred$|json_each |j VIRTUAL TABLE|r (?:EXISTS )?VIRTUAL TABLE|CONSTANT|\(subquery-\d+\)|\d+-ROW VALUES|sqlite_sequence|migration|event_type|c$|session USING (?:COVERING )?INDEX session_running|session_input USING INDEX session_input_waiting|session_floor USING (?:COVERING )?INDEX session_floor_claim|consumer_poison USING INDEX consumer_poison_stop)/.test(
    step
  )

/** What asks for rows of ours; emptying the scratch database's tables asks for none. */
const isStatement = (text: string) =>
  /^(SELECT|INSERT|UPDATE|DELETE|WITH)/.test(text) && !/pragma_|sqlite_master|^DELETE FROM \w+$/.test(text)

/** Prunes a session twice, with an archive, puts the second one back, and lists what a run over all sessions would do. */
const retained = Effect.fnUntraced(function* (id: SessionID, archive: string) {
  yield* begun(id, 4)
  yield* (yield* EventLog).append(id, [
    draft("session.next.permission.revoked", { number: 1, permission: "bash", resource: "*", uid: 1 })
  ])
  yield* pruned(id, { to: 30 }, archive)
  const { path } = yield* pruned(id, {}, archive)
  if (path !== undefined) yield* restore(path, { pace: atOnce })
  const holders = Retention.noHolders
  yield* Stream.runDrain(Retention.plan({ keep: 0, to: "compaction", holders }))
  const outcome = yield* Retention.run({ sessions: [id], holders }, { pace: atOnce, archive })
  assert.deepInclude(outcome, { sessions: 1, failed: [] })
  const [cut] = yield* Stream.runCollect(Retention.plan({ keep: 0, holders }))
  if (cut !== undefined) yield* Retention.isPruned(cut)
  yield* (yield* SessionStore).messages({ sessionID: id })
})

it.scopedLive(
  "ST-10: no statement of the log, retention, the rebuild, the verification or the store walks through a table",
  () =>
    Effect.gen(function* () {
      const filename = yield* temporaryDatabase
      const texts = new Set<string>()
      const layer = Layer.provideMerge(layerQuestions, layerOwner()).pipe(
        Layer.provideMerge(layerStore),
        Layer.provideMerge(faultyLog(filename))
      )
      yield* Effect.gen(function* () {
        const [log, faults, store, inbox] = [yield* EventLog, yield* Faults, yield* SessionStore, yield* Inbox]
        const id = session()
        const logs = Array.from({ length: 12 }, unique).map((name, index) => ({
          id: session(),
          // The same kinds of events in every run.
          drafts: fc.sample(plausibleLog(name, 120), { numRuns: 1, seed: index })[0] ?? ([created] as const)
        }))
        yield* Effect.forEach(
          logs,
          ({ drafts, id }) => Effect.forEach(drafts, (draft) => log.append(id, [draft as Draft])),
          { concurrency: "unbounded" }
        )
        const input = message()
        yield* log.append(id, [created, admitted(input), renamed("x")])
        yield* Stream.runDrain(Stream.take(log.tail({ sessionID: id }), 3))
        yield* Stream.runDrain(Stream.take(log.feed(), 3))
        yield* log.latest(id)
        yield* log.readFeed({ after: 1, limit: 2 })
        yield* log.removals()
        yield* log.claimReplay(id, "me")
        const copy = session()
        yield* begin(copy, 5)
        const events = yield* foreign(copy)
        yield* log.remove(copy)
        yield* log.replay(events)
        yield* log.replay(events)
        const old = session()
        yield* retained(old, join(dirname(filename), "archive"))
        yield* Rebuild.rebuild("all")
        assert.deepStrictEqual(yield* Stream.runCollect(Doctor.verify).pipe(Effect.map((found) => [...found])), [])
        yield* store.get(id)
        yield* inbox.get(input)
        yield* store.addressed({ scope: "private", uid: 1, kind: "agent", name: "a", session: "s" })
        yield* store.continued(id, { trigger: "resume", admittedSeq: undefined })
        yield* inbox.hasWork(id)
        yield* Effect.scoped(
          Effect.gen(function* () {
            const owners = yield* SessionOwner
            yield* owners.acquireUnlessBusy(id)
            yield* owners.handedOver
            yield* owners.requestStop(id, { ownerID: "nobody", epoch: 1 }, "act_1")
          })
        )
        yield* store.titled("x")
        yield* store.titled("x", { directory: "/work" })
        yield* inbox.receipt({ sessionID: id, messageID: message(), prompt: { text: "x" }, delivery: "steer" })
        yield* inbox.prospect(id, message())
        yield* inbox.waiting(id, { limit: 10 })
        yield* inbox.waiting(id, { limit: 10, delivery: "steer", through: 5 })
        yield* inbox.count(id)
        yield* inbox.sessions
        yield* log.placeOf(id, "evt_1")
        yield* store.contextRows(id, 0)
        const compacted = session()
        yield* log.append(compacted, [
          created,
          draft("session.next.compaction.ended", { messageID: message(), reason: "auto", text: "so far", recent: "" })
        ])
        yield* store.contextRows(compacted, 0)
        yield* store.unsettledTools(id)
        yield* store.openStep(id)
        yield* store.instructionFiles(id, 10)
        yield* log.append(id, [renamed("y")], { commit: store.isAt({ directory: "/work" }) })
        yield* log.append(id, [renamed("z")], { commit: store.isOnlyOne("z") })
        yield* store.messages({ sessionID: id })
        yield* store.snapshot(id)
        yield* store.snapshots(id)
        const consumer = {
          name: unique(),
          sessionID: id,
          fromSnapshot: () => Effect.void,
          apply: () => Effect.fail("odd")
        }
        yield* Effect.exit(Consumer.run({ ...consumer, follow: false, retry: Schedule.stop }))
        yield* Consumer.run({ ...consumer, follow: false, retry: Schedule.stop, onPoison: "skip" })
        yield* Consumer.skipped(consumer.name)
        yield* Consumer.holds(id)
        yield* Consumer.list
        yield* Consumer.remove(consumer.name)
        yield* store.interrupted
        yield* store.ancestors(id)
        yield* store.treeUsage(id)
        yield* store.metrics(id, 0)
        yield* store.lastWork(id)
        yield* store.attempts(id)
        yield* store.todos(id)
        // The same and the tree again, in a session with branches.
        const branched = session()
        const leaf = message()
        yield* log.append(branched, [
          created,
          draft("session.next.synthetic", { messageID: leaf, text: "one" }),
          draft("session.next.synthetic", { messageID: message(), text: "two" }),
          draft("session.next.leaf.moved", { messageID: leaf, path: [[0, 1]] }),
          draft("session.next.labeled", { messageID: leaf, label: "here" }),
          draft("session.next.synthetic", { messageID: message(), text: "three" })
        ])
        yield* store.contextRows(branched, 0)
        yield* store.contextAt(branched, { baselineSeq: 0, before: 6 })
        yield* store.stepAt(branched, 6)
        yield* store.instructionFiles(branched, 10)
        yield* store.todos(branched)
        yield* store.continued(branched, { trigger: "resume", admittedSeq: undefined })
        yield* store.messages({ sessionID: branched })
        yield* store.messages({ sessionID: branched, order: "desc" })
        yield* store.tree({ sessionID: branched })
        yield* store.place(branched, leaf)
        yield* store.undoable(branched)
        yield* store.undoable(id)
        yield* store.redoable(branched)
        yield* store.find(branched, "here")
        yield* store.find(branched, leaf)
        yield* store.find(branched, "msg_")
        const context = { baseline: 0, snapshot: { told: {} } }
        yield* log.append(id, [
          draft("session.next.request.framed", { hash: "h", system: [""], baselineSeq: 0, context })
        ])
        yield* (yield* EpochStore).get(id)
        const questions = yield* Questions
        yield* questions.pending(id)
        const ref = { sessionID: id, messageID: message(), callID: "call" }
        yield* log.append(id, [
          draft("session.next.step.started", {
            assistantMessageID: ref.messageID,
            agent: "build",
            model: { providerID: "p", id: "m" }
          }),
          draft("session.next.tool.input.started", {
            assistantMessageID: ref.messageID,
            callID: "call",
            name: "question"
          }),
          draft("session.next.tool.called", {
            assistantMessageID: ref.messageID,
            callID: "call",
            tool: "question",
            input: { questions: [{ question: "Which?" }] },
            provider: { executed: false }
          })
        ])
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* (yield* SessionOwner).acquireUnlessBusy(id)
            yield* questions.answer({ ...ref, answers: ["this"] })
            yield* questions.outcome(ref)
          })
        )
        for (const text of faults.ran) texts.add(text)
      }).pipe(Effect.provide(layer), Effect.withTracer(recording(texts)))
      const database = yield* Effect.acquireRelease(
        Effect.sync(() => new Sqlite(filename, { readonly: true })),
        (database) => Effect.sync(() => database.close())
      )
      const asked = [...texts].filter(isStatement)
      assert.isAbove(asked.length, 40)
      for (const part of [
        "tree",
        "line",
        "name = 'todo'",
        "question",
        "FROM event_sequence",
        "INSERT INTO event ",
        "UPDATE session_part",
        "position >",
        "FROM session_removal",
        "WHERE address =",
        "interrupt_activity =",
        "FROM consumer c",
        "INTO consumer_poison",
        "seq >",
        "seq IN (SELECT",
        "FROM session_floor",
        "INTO content",
        "DELETE FROM event AS e",
        "DELETE FROM content",
        "UNION SELECT settled FROM session_message",
        "CROSS JOIN session_part",
        "LEFT JOIN session_part p ON p.session = s.session",
        "coalesce(name, '') NOT IN",
        "last <=",
        "FROM kept_decision",
        "SELECT ?, s.session",
        "CROSS JOIN session_message",
        "FROM session_leaf",
        "FROM session_label"
      ]) {
        assert.isTrue(
          asked.some((text) => text.includes(part)),
          `nothing was recorded for: ${part}`
        )
      }
      const walking = asked.filter((text) => planOf(database, text).some(walks))
      assert.deepStrictEqual(walking, [])
      for (const [part, index] of [
        ["name = 'todo'", "session_part_todo (session=? AND seq<?)"],
        ["WITH RECURSIVE tree", "session_parent (parent_id=?)"],
        ["p.status = 'running' ORDER BY p.seq", "session_part_unsettled (session=?)"],
        ["WHERE address =", "session_address (address=?)"],
        ["CROSS JOIN session_message", "SEARCH m USING PRIMARY KEY (session=? AND seq>? AND seq<?)"],
        ["SELECT seq, message_id FROM session_leaf", "SEARCH session_leaf USING PRIMARY KEY (session=? AND seq<?)"],
        ["INDEXED BY session_message_compaction", "session_message_compaction (session=? AND seq<?)"],
        ["INDEXED BY session_message_system", "session_message_system (session=? AND seq>? AND seq<?)"],
        ["CROSS JOIN session_part", "SEARCH p USING PRIMARY KEY (session=? AND message_id=?)"],
        [
          "LEFT JOIN session_part p ON p.session = s.session",
          "SEARCH p USING PRIMARY KEY (session=? AND message_id=?)"
        ],
        ["coalesce(name, '') NOT IN", "USING PRIMARY KEY (session=? AND message_id=?)"],
        ["CROSS JOIN session_input", "session_input_3 (session=? AND promoted_seq=?)"],
        [
          "promoted_seq IS NOT NULL AND +admitted_seq",
          "sqlite_autoindex_session_input_3 (session=? AND promoted_seq>?)"
        ]
      ] as const) {
        const plans = asked.filter((text) => text.includes(part)).map((text) => planOf(database, text).join("; "))
        assert.isNotEmpty(plans, part)
        for (const plan of plans) assert.include(plan, index)
      }
    })
)

/** A search by the row's identity, in whichever tree holds it: an id, or all of a part's key. */
const byIdentity = (step: string, key: ReadonlyArray<string>): boolean =>
  /^SEARCH .* USING (INDEX|PRIMARY KEY)/.test(step) &&
  (key.includes("id") ? ["id"] : key.map((column) => (column === "session_id" ? "session" : column))).every((column) =>
    new RegExp(`\\b${column}=\\?`).test(step)
  )

it.scopedLive("ST-10: an update of many rows finds each by its key, from the list of values", () =>
  Effect.gen(function* () {
    const filename = yield* temporaryDatabase
    yield* Effect.gen(function* () {
      yield* SqlClient.SqlClient
      const database = new Sqlite(filename, { readonly: true })
      const shapes = [
        ["session", { set: ["title", "time_updated"], add: ["cost", "tokens_input"] }],
        ["session_input", { set: ["promoted_seq"], add: [] }],
        ["session_message", { set: ["settled"], add: [] }],
        ["session_part", { set: ["status", "settled"], add: [] }]
      ] as const
      for (const [table, shape] of shapes) {
        for (const rows of [1, 4, 16, 64]) {
          const plan = planOf(database, updateStatement(table, shape, rows))
          assert.isTrue(
            plan.some((step) => byIdentity(step, tables[table].key)),
            `${table}, ${rows} rows: ${plan.join("; ")}`
          )
          assert.isFalse(plan.some(walks), plan.join("; "))
        }
      }
      database.close()
    }).pipe(Effect.provide(faultyLog(filename)))
  })
)
