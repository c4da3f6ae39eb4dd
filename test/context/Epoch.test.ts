/**
 * The stored epoch (EP-5, EP-6, EP-8, EP-9) on a real file. Requests are framed as the runner frames them. Method of the
 * fault tests: each SQL statement of the write transaction fails in turn, from the first, until a run passes with none
 * failing. After each fault the database must be as it was before, byte for byte of its rows, and the same work must
 * succeed afterwards.
 */
import { SqlClient } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import { Array as Arr, Chunk, Effect, Layer, Stream, Struct } from "effect"
import * as ContextEpoch from "../../packages/core/src/context/ContextEpoch.ts"
import { type Observed, text, textSource, unavailable } from "../../packages/core/src/context/SystemContext.ts"
import * as Preparation from "../../packages/core/src/runner/Preparation.ts"
import { draft } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import * as Doctor from "../../packages/log/src/maintenance/Doctor.ts"
import * as Rebuild from "../../packages/log/src/maintenance/Rebuild.ts"
import * as SqlEpochStore from "../../packages/log/src/store/SqlEpochStore.ts"
import { isAt } from "../../packages/log/src/store/SessionChecks.ts"
import { temporaryDatabase } from "../support/Database.ts"
import { Faults, faultyLog } from "../support/FaultySql.ts"
import { begin, contents, foreign, message, readAll, session } from "../support/Logs.ts"
import { turn } from "./support/Look.ts"

const store = Layer.unwrapScoped(
  Effect.map(temporaryDatabase, (filename) =>
    ContextEpoch.layer.pipe(Layer.provideMerge(SqlEpochStore.layer), Layer.provideMerge(faultyLog(filename)))
  )
)

const look = (says: Record<string, string | undefined>): Observed =>
  new Map(
    Object.entries(says).map(([key, words]) => [
      key,
      Effect.runSync(
        Effect.orDie(
          textSource(key, () =>
            Effect.succeed(words === undefined ? unavailable : text(words, `${key} no longer holds.`))
          ).load(turn)
        )
      )
    ])
  )

/** A session in the folder of the fence, and the epoch's verbs for it. */
const open = Effect.gen(function* () {
  const sessionID = session()
  yield* begin(sessionID)
  const sql = yield* SqlClient.SqlClient
  const epochs = yield* ContextEpoch.ContextEpoch
  const log = yield* EventLog
  const owner = { ownerID: "own_test", epoch: 1 }
  yield* sql`UPDATE event_sequence SET owner_id = ${owner.ownerID}, owner_epoch = 1, lease_until = 9000000000000000`
  const fence = isAt({ directory: "/work" })
  const frameChange = Preparation.makeRequestFrames()
  const prepare = (says: Record<string, string | undefined>) => epochs.prepare(sessionID, look(says))
  /** Frames a request with the epoch. */
  const show = Effect.fnUntraced(function* (epoch: ContextEpoch.Epoch) {
    const { baseline, baselineSeq } = epoch
    const frame = { system: ["Be brief.", baseline], baselineSeq, tools: [], settings: {} }
    const [row] = yield* sql<{ readonly frame: string | null }>`SELECT frame FROM session WHERE id = ${sessionID}`
    const before = typeof row?.frame === "string" ? { frame: row.frame } : {}
    const drafts = frameChange({ id: sessionID, ...before }, frame, epoch)
    if (Arr.isNonEmptyReadonlyArray(drafts)) yield* log.append(sessionID, drafts, { owner, commit: fence })
  })
  return {
    sessionID,
    prepare,
    show,
    /** The stored epoch after a request with this context. */
    shown: (says: Record<string, string | undefined>) =>
      prepare(says).pipe(
        Effect.tap(show),
        Effect.map((epoch): ContextEpoch.Epoch => ({ ...epoch, state: "stored" }))
      ),
    advance: (epoch: ContextEpoch.Epoch, says: Record<string, string | undefined>) =>
      epochs.advance(sessionID, epoch, look(says), { owner, fence }),
    get: epochs.get(sessionID),
    compact: Effect.gen(function* () {
      const messageID = message()
      yield* log.append(sessionID, [
        draft("session.next.compaction.started", { messageID, reason: "auto" }),
        draft("session.next.compaction.ended", { messageID, reason: "auto", text: "so far", recent: "" })
      ])
      return yield* log.latest(sessionID)
    }),
    latest: log.latest(sessionID)
  }
})

/** Fails each statement of `work` after its BEGIN, which is tried again, in turn; says how many there were. */
const failingEach = Effect.fnUntraced(function* <A, E, R>(work: Effect.Effect<A, E, R>) {
  const faults = yield* Faults
  const before = yield* contents
  for (let nth = 2; ; nth++) {
    faults.ran = []
    faults.fails = (index) => index === nth
    const exit = yield* Effect.exit(work)
    faults.fails = () => false
    if (faults.ran.length < nth) return { result: yield* exit, statements: nth - 1 }
    assert.strictEqual(exit._tag, "Failure", `statement ${nth}: ${faults.ran[nth - 1]}`)
    assert.deepStrictEqual(yield* contents, before, `after statement ${nth}: ${faults.ran[nth - 1]}`)
  }
})

it.scoped("EP-5: whichever statement fails while a change is told, neither the snapshot nor the message is left", () =>
  Effect.gen(function* () {
    const { advance, get, shown } = yield* open
    const epoch = yield* shown({ "test/a": "A is 1." })
    const { result, statements } = yield* failingEach(advance(epoch, { "test/a": "A is 2." }))
    assert.isAtLeast(statements, 5)
    assert.deepStrictEqual(yield* get, result)
    const sql = yield* SqlClient.SqlClient
    const told = yield* sql`SELECT count(*) AS n FROM events WHERE type LIKE '%context.updated%'`
    assert.deepStrictEqual(told[0], { n: 1 })
  }).pipe(Effect.provide(store))
)

it.scoped(
  "EP-3: whichever statement fails while the first baseline is stored, none is left, and a retry makes it",
  () =>
    Effect.gen(function* () {
      const { get, shown } = yield* open
      const { result, statements } = yield* failingEach(shown({ "test/a": "A is 1." }))
      assert.isAtLeast(statements, 3)
      assert.deepInclude(result, { baseline: "A is 1.", baselineSeq: 0 })
      assert.deepStrictEqual(yield* get, result)
    }).pipe(Effect.provide(store))
)

it.scoped("EP-8: whichever statement fails while a fresh baseline is stored, the old one is left as it was", () =>
  Effect.gen(function* () {
    const { compact, get, shown } = yield* open
    yield* shown({ "test/a": "A is 1." })
    const compacted = yield* compact
    const { result } = yield* failingEach(shown({ "test/a": "A is 2." }))
    assert.deepInclude(result, { baseline: "A is 2.", baselineSeq: compacted })
    assert.deepStrictEqual(yield* get, result)
  }).pipe(Effect.provide(store))
)

it.scoped("CX-19: an owner that was replaced stores no baseline", () =>
  Effect.gen(function* () {
    const { compact, get, shown } = yield* open
    const first = yield* shown({ "test/a": "A is 1." })
    yield* compact
    const sql = yield* SqlClient.SqlClient
    yield* sql`UPDATE event_sequence SET owner_epoch = owner_epoch + 1`
    assert.strictEqual((yield* Effect.flip(shown({ "test/a": "A is 2." })))._tag, "OwnerLost")
    assert.deepStrictEqual(yield* get, first)
  }).pipe(Effect.provide(store))
)

it.scoped("EP-8: after a completed compaction the baseline is fresh, once, and its seq is the compaction's", () =>
  Effect.gen(function* () {
    const { advance, compact, latest, prepare, shown } = yield* open
    const first = yield* shown({ "test/a": "A is 1." })
    yield* advance(first, { "test/a": "A is 2." })
    const compacted = yield* compact
    const fresh = yield* shown({ "test/a": "A is 3." })
    assert.deepInclude(fresh, { baseline: "A is 3.", baselineSeq: compacted })
    // The next turn starts from the same one: what changed since is told.
    assert.deepStrictEqual(yield* prepare({ "test/a": "A is 4." }), fresh)
    yield* advance(fresh, { "test/a": "A is 4." })
    assert.strictEqual(yield* latest, compacted + 2)
  }).pipe(Effect.provide(store))
)

it.scoped("EP-8: an attempt at a compaction that did not end leaves the baseline", () =>
  Effect.gen(function* () {
    const { prepare, sessionID, shown } = yield* open
    const log = yield* EventLog
    const first = yield* shown({ "test/a": "A is 1." })
    yield* log.append(sessionID, [draft("session.next.compaction.started", { messageID: message(), reason: "auto" })])
    assert.deepStrictEqual(yield* prepare({ "test/a": "A is 2." }), first)
  }).pipe(Effect.provide(store))
)

it.scoped(
  "EP-8: while a source that was told cannot be seen, the old baseline and the changes told stay; then the fresh one " +
    "contains all of them",
  () =>
    Effect.gen(function* () {
      const { advance, compact, latest, prepare, shown } = yield* open
      const first = yield* shown({ "test/a": "A is 1.", "test/b": "B is 1." })
      const compacted = yield* compact
      const blocked = yield* prepare({ "test/a": "A is 1.", "test/b": undefined })
      assert.deepStrictEqual(blocked, first)
      // Told after the compaction, while the baseline had to wait.
      yield* advance(blocked, { "test/a": "A is 2.", "test/b": undefined })
      const told = yield* latest
      assert.isAbove(told, compacted)
      const fresh = yield* prepare({ "test/a": "A is 3.", "test/b": "B is 1." })
      // Or the change to 2 would be shown after a baseline that says 3.
      assert.deepInclude(fresh, { baseline: "A is 3.\n\nB is 1.", baselineSeq: told })
    }).pipe(Effect.provide(store))
)

it.scoped("EP-8: a source that was never told does not hold a fresh baseline back", () =>
  Effect.gen(function* () {
    const { compact, prepare, shown } = yield* open
    yield* shown({ "test/a": "A is 1." })
    const compacted = yield* compact
    const fresh = yield* prepare({ "test/a": "A is 2.", "test/new": undefined })
    assert.deepInclude(fresh, { baseline: "A is 2.", baselineSeq: compacted })
  }).pipe(Effect.provide(store))
)

it.scoped("CX-53: an epoch that is lost or changed in the session's row is found and rebuilt byte for byte", () =>
  Effect.gen(function* () {
    const { advance, get, sessionID, shown } = yield* open
    const sql = yield* SqlClient.SqlClient
    yield* advance(yield* shown({ "test/a": "A is 1." }), { "test/a": "A is 2." })
    const [before, epoch] = [yield* contents, yield* get]
    assert.deepStrictEqual(epoch?.snapshot, {
      "test/a": { value: { text: "A is 2.", removed: "test/a no longer holds." }, removed: "test/a no longer holds." }
    })
    const findings = Effect.map(Stream.runCollect(Doctor.verify), Chunk.toReadonlyArray)
    assert.deepStrictEqual(yield* findings, [])
    for (const [column, value] of [
      ["epoch", null],
      ["epoch", 0],
      ["baseline_seq", null],
      ["baseline_seq", 7]
    ] as const) {
      yield* sql`UPDATE session SET ${sql(column)} = ${value}`
      assert.deepStrictEqual((yield* findings).map(Struct.get("what")), [`session differs from its events: ${column}`])
      yield* Rebuild.rebuild(sessionID)
      assert.deepStrictEqual(yield* contents, before)
    }
    yield* sql`DELETE FROM session`
    assert.isAtLeast((yield* findings).length, 1)
    yield* Rebuild.rebuild(sessionID)
    assert.deepStrictEqual(yield* contents, before)
    assert.deepStrictEqual(yield* get, epoch)
  }).pipe(Effect.provide(store))
)

it.scoped("CX-53: a log that is replayed elsewhere has its epoch there", () =>
  Effect.gen(function* () {
    const { advance, compact, get, sessionID, shown } = yield* open
    yield* shown({ "test/a": "A is 1.", "test/b": "B is 1." })
    yield* compact
    yield* advance(yield* shown({ "test/a": "A is 2.", "test/b": "B is 1." }), { "test/a": "A is 3." })
    const [events, epoch] = [yield* foreign(sessionID), yield* get]
    const there = Effect.gen(function* () {
      yield* (yield* EventLog).replay(events)
      return yield* (yield* ContextEpoch.ContextEpoch).get(sessionID)
    })
    assert.isDefined(epoch)
    assert.deepStrictEqual(yield* Effect.provide(there, store), epoch)
  }).pipe(Effect.provide(store))
)

it.scoped("CX-53: a log whose frames introduce no baseline has no epoch, and its next turn renders one", () =>
  Effect.gen(function* () {
    const { get, latest, prepare, sessionID } = yield* open
    const log = yield* EventLog
    const system = ["Be brief.", "A is 1."]
    yield* log.append(sessionID, [
      draft("session.next.request.framed", { hash: "old", system, baselineSeq: 0, settings: {} }),
      draft("session.next.context.updated", { messageID: message(), text: "A is 2." })
    ])
    assert.isUndefined(yield* get)
    const fresh = yield* prepare({ "test/a": "A is 3." })
    assert.deepInclude(fresh, { baseline: "A is 3.", baselineSeq: yield* latest, state: "new" })
  }).pipe(Effect.provide(store))
)

it.scoped("CX-54: a context that a compaction leaves unchanged is not stored again", () =>
  Effect.gen(function* () {
    const { compact, prepare, sessionID, shown } = yield* open
    const says = { "test/a": "A is 1." }
    yield* shown(says)
    const compacted = yield* compact
    assert.strictEqual((yield* prepare(says)).state, "same")
    const epoch = yield* shown(says)
    assert.strictEqual(epoch.baselineSeq, compacted)
    assert.deepStrictEqual(yield* prepare(says), epoch)
    const frames = (yield* readAll(sessionID)).flatMap((event) =>
      event.type === "session.next.request.framed" ? [event.data] : []
    )
    assert.deepStrictEqual(
      frames.map(({ context }) => context !== undefined),
      [true, false]
    )
    assert.isUndefined(frames[1]?.system)
  }).pipe(Effect.provide(store))
)
