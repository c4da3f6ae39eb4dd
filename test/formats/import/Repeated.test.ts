/** Imports of one log again: after a stop at any batch, after the log grew, and after something else changed. */
import { assert, it } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import { draft } from "../../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../../packages/log/src/log/EventLog.ts"
import { layerStore } from "../../../packages/log/src/Store.ts"
import { SessionStore } from "../../../packages/log/src/store/SessionStore.ts"
import { importLog } from "../../../packages/formats/src/import/Import.ts"
import { memoryLog } from "../../support/Database.ts"
import { linesOf, longRecords, piRecords } from "../support/EntryTexts.ts"
import { assertGrows, claudeLogs, codexLogs } from "../support/GrowingLogs.ts"
import { eventsOf, exported, importText, piecesOf } from "../support/RoundTrips.ts"

const store = () => Effect.provide(Layer.provideMerge(layerStore, memoryLog))

/** Events without what a database assigns. */
const contents = (id: string) =>
  Effect.map(eventsOf(id), (events) => events.map(({ created, data, seq, type }) => ({ created, data, seq, type })))

/** Imports and stops after a number of batches, as a kill would. */
const stoppedAfter = (text: string, batches: number) => {
  let left = batches
  return importLog(() => piecesOf(text), {
    directory: "/tmp",
    progress: () => Effect.suspend(() => (--left > 0 ? Effect.void : Effect.interrupt))
  }).pipe(Effect.exit)
}

it.effect(
  "IM-41: an import that stops after any batch, then runs again, gives the events of one that never stopped",
  () =>
    Effect.gen(function* () {
      const text = linesOf(longRecords(400))
      const clean = yield* Effect.flatMap(importText(text), ({ sessionID }) => contents(sessionID)).pipe(store())
      const batches = clean.filter(({ type, data }) => type === "session.next.imported" && "log" in data).length
      assert.isAbove(batches, 3)
      for (let stop = 1; stop < batches; stop++) {
        yield* Effect.gen(function* () {
          yield* stoppedAfter(text, stop)
          const { sessionID, ...report } = yield* importText(text)
          assert.strictEqual(report.status, "continued")
          assert.deepStrictEqual(yield* contents(sessionID), clean)
        }).pipe(store())
      }
    })
)

it.effect("IM-22: until the import is complete, the session says so", () =>
  Effect.gen(function* () {
    const text = linesOf(longRecords(400))
    yield* stoppedAfter(text, 2)
    const sessions = yield* SessionStore
    const [half] = (yield* sessions.list({})).items
    assert.deepStrictEqual(half?.imported?.ends, [])
    const { records, sessionID } = yield* importText(text)
    assert.deepStrictEqual((yield* sessions.get(sessionID)).imported?.ends, [records])
  }).pipe(store())
)

it.effect("IM-41: an import again stores nothing; IM-42: what a log has more than before follows", () =>
  Effect.gen(function* () {
    const all = longRecords(30)
    const [text, longer] = [linesOf(all.slice(0, 40)), linesOf(all)]
    const { sessionID } = yield* importText(text)
    const before = yield* contents(sessionID)
    assert.deepInclude(yield* importText(text), { status: "unchanged", added: 0 })
    assert.deepStrictEqual(yield* contents(sessionID), before)
    const grown = yield* importText(longer)
    assert.deepInclude(grown, { status: "grown", sessionID, added: all.length - 40 })
    assert.deepStrictEqual((yield* contents(sessionID)).slice(0, before.length), before)
    assert.strictEqual((yield* exported(sessionID, "pi")).text, longer)
    assert.deepInclude(yield* importText(longer), { status: "unchanged", added: 0 })
  }).pipe(store())
)

it.effect("IM-42: a log that is not the imported one is refused, and nothing is stored", () =>
  Effect.gen(function* () {
    const all = longRecords(30)
    const { sessionID } = yield* importText(linesOf(all))
    const before = yield* contents(sessionID)
    const changed = all.map((record, n) => (n === 3 ? { ...record, more: true } : record))
    for (const other of [changed, all.slice(0, 20), [...changed, { ...all.at(-1), id: "new" }]]) {
      const refused = yield* Effect.flip(importText(linesOf(other)))
      assert.strictEqual(refused._tag, "SourceDiffers")
    }
    assert.deepStrictEqual(yield* contents(sessionID), before)
  }).pipe(store())
)

it.effect("IM-43: new records do not follow what the session did; IM-44: as new they are another session", () =>
  Effect.gen(function* () {
    const all = longRecords(30)
    const [text, longer] = [linesOf(all.slice(0, 40)), linesOf(all)]
    const { sessionID } = yield* importText(text)
    yield* (yield* EventLog).append(sessionID, [draft("session.next.renamed", { title: "mine" })])
    const before = yield* contents(sessionID)
    assert.strictEqual((yield* Effect.flip(importText(longer)))._tag, "SessionContinued")
    assert.deepInclude(yield* importText(text), { status: "unchanged", added: 0 })
    assert.deepStrictEqual(yield* contents(sessionID), before)
    const other = yield* importText(longer, { asNew: true })
    assert.notStrictEqual(other.sessionID, sessionID)
    assert.strictEqual(other.status, "imported")
    assert.strictEqual((yield* exported(other.sessionID, "pi")).text, longer)
  }).pipe(store())
)

it.effect("IM-420: whatever line a log of Claude Code ended at when it was imported, the whole log follows", () =>
  Effect.forEach(claudeLogs, assertGrows).pipe(store())
)

it.effect("IM-420: whatever line a rollout of Codex ended at when it was imported, the whole rollout follows", () =>
  Effect.forEach(codexLogs, assertGrows).pipe(store())
)

it.effect(
  "IM-421: an import that makes other events of the stored records does not blame a change of the session",
  () =>
    Effect.gen(function* () {
      const all = longRecords(30)
      const { sessionID } = yield* importText(linesOf(all.slice(0, 40)))
      const before = yield* eventsOf(sessionID)
      const last = before.at(-1)
      if (last?.type !== "session.next.imported") return assert.fail("an import ends with its progress")
      // As another release may have stored the same records: with one event more.
      yield* (yield* EventLog).append(sessionID, [draft("session.next.imported", last.data)])
      const refused = yield* Effect.flip(importText(linesOf(all)))
      assert.deepInclude({ ...refused }, { _tag: "ImportDiffers", sessionID, records: 39 })
      assert.strictEqual((yield* contents(sessionID)).length, before.length + 1)
    }).pipe(store())
)

it.effect("IM-45: a dry run reports the same and stores nothing", () =>
  Effect.gen(function* () {
    const text = linesOf(longRecords(30))
    const rehearsed = yield* importText(text, { dryRun: true })
    assert.deepStrictEqual((yield* (yield* SessionStore).list({})).items, [])
    assert.deepStrictEqual(yield* importText(text), rehearsed)
  }).pipe(store())
)

it.effect("IM-43: two imports of one log at the same time store it once", () =>
  Effect.gen(function* () {
    const text = linesOf(longRecords(400))
    const clean = yield* Effect.flatMap(importText(text), ({ sessionID }) => contents(sessionID)).pipe(store())
    const both = yield* Effect.all([Effect.either(importText(text)), Effect.either(importText(text))], {
      concurrency: "unbounded"
    })
    assert.isAtLeast(both.filter(({ _tag }) => _tag === "Right").length, 1)
    const { sessionID } = yield* importText(text)
    assert.deepStrictEqual(yield* contents(sessionID), clean)
  }).pipe(store())
)

it.effect("IM-5: results without a call are reported and not shown", () =>
  Effect.gen(function* () {
    const orphan = {
      type: "message",
      id: "o1",
      parentId: "i1",
      timestamp: new Date(1_760_000_100_000).toISOString(),
      message: { role: "toolResult", toolCallId: "nowhere", toolName: "bash", content: [] }
    }
    const source = linesOf([...piRecords("/tmp"), orphan])
    const { first, problems, sessionID } = yield* importText(source)
    assert.deepStrictEqual(problems, { "result-without-call": 1 })
    assert.strictEqual(first[0]?.place.line, piRecords("/tmp").length + 1)
    assert.strictEqual((yield* exported(sessionID, "pi")).text, source)
  }).pipe(store())
)

it.effect("IM-1: a log without a head, or with two, is refused and stores nothing", () =>
  Effect.gen(function* () {
    const nothing = yield* Effect.flip(importLog(() => Stream.empty, { directory: "/tmp" }))
    assert.strictEqual(nothing._tag, "NoHead")
    assert.deepStrictEqual((yield* (yield* SessionStore).list({})).items, [])
  }).pipe(store())
)
