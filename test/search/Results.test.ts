/** Order, groups, pages, marks and plans of results; words of other scripts. */
import { assert, it } from "@effect/vitest"
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, FastCheck as fc, TestClock } from "effect"
import { draft } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { type Candidate, candidatesOf, newest, rank, scoreOf } from "../../packages/log/src/search/Matching.ts"
import { Search } from "../../packages/log/src/search/Search.ts"
import * as SqlSearch from "../../packages/log/src/search/SqlSearch.ts"
import { openIndex, searchPath } from "../../packages/log/src/storage/SearchFile.ts"
import { temporaryDatabase } from "../support/Database.ts"
import { cases, forAll } from "../support/Cases.ts"
import { admitted, created, message, session } from "../support/Logs.ts"
import { begun } from "../support/Pruning.ts"
import { found, memorySearch, places, searchAt } from "./support/Searching.ts"

const day = 86_400_000

const candidate = fc.record<Candidate>({
  position: fc.nat(1_000_000),
  session: fc.nat(20),
  seq: fc.nat(),
  role: fc.nat(3),
  created: fc.nat(1_000 * day),
  size: fc.nat(70_000)
})

it("SE-40: a text scores higher if it is newer, shorter, or has the words together", () => {
  forAll([candidate, fc.nat(1_000 * day), fc.nat(60_000)], 80, (one, age, more) => {
    const now = 1_000 * day
    const score = scoreOf(one, false, now)
    assert.isAbove(score, 0)
    assert.strictEqual(scoreOf(one, true, now), 2 * score)
    assert.isAtMost(scoreOf({ ...one, created: one.created - age }, false, now), score)
    assert.isAtMost(scoreOf({ ...one, size: one.size + more }, false, now), score)
    assert.isAbove(score, 0.4999 * scoreOf({ ...one, created: now }, false, now))
  })
  const plain = { position: 1, session: 1, seq: 1, created: 0, size: 0 }
  const scores = [0, 1, 2, 3].map((role) => scoreOf({ ...plain, role }, false, 0))
  assert.deepStrictEqual(scores, [1, 0.8, 0.5, 0.4])
  assert.strictEqual(scoreOf({ ...plain, role: 0 }, false, 30 * day), 0.75)
  assert.strictEqual(scoreOf({ ...plain, role: 0, size: 1_000 }, false, 0), 0.5)
})

it("SE-42: groups keep every text once, the session and the text with the best score first", () => {
  forAll([fc.uniqueArray(candidate, { selector: ({ position }) => position })], 40, (all) => {
    const groups = rank(all, new Set(all.slice(0, 3).map(({ position }) => position)), 1_000 * day)
    const scores = groups.map(({ members }) => members.map(({ score }) => score))
    const firsts = scores.flatMap((each) => each.slice(0, 1))
    for (const each of [...scores, firsts])
      assert.deepStrictEqual(
        each,
        each.toSorted((a, b) => b - a)
      )
    const positions = groups.flatMap(({ members }) => members.map(({ position }) => position))
    assert.deepStrictEqual(
      positions.toSorted((a, b) => a - b),
      all.map(({ position }) => position).toSorted((a, b) => a - b)
    )
    assert.strictEqual(new Set(groups.map((group) => group.session)).size, groups.length)
  })
})

const prompted = Effect.fnUntraced(function* (text: string, at?: string) {
  const [log, id] = [yield* EventLog, session()]
  const location = { directory: at ?? "/work" }
  yield* log.append(id, [draft("session.created", { location }), admitted(message(), text)])
  return id
})

it.effect("SE-42: pages show every session once, as the index was for the first page", () =>
  Effect.gen(function* () {
    const search = yield* Search
    for (let index = 0; index < 7; index++) yield* prompted(`heron ${index}`)
    const first = yield* found("heron", { limit: 3 })
    yield* prompted("heron, heron")
    yield* search.update()
    const second = yield* search.search({ query: "heron", limit: 3, cursor: first.cursor })
    const third = yield* search.search({ query: "heron", limit: 3, cursor: second.cursor })
    const ids = [first, second, third].flatMap(({ items }) => items.map(({ sessionID }) => sessionID))
    assert.strictEqual(new Set(ids).size, 7)
    assert.strictEqual(ids.length, 7)
    assert.isUndefined(third.cursor)
    const refused = yield* Effect.flip(search.search({ query: "heron", cursor: "no" }))
    assert.deepInclude(refused, { _tag: "InvalidInput", field: "cursor" })
  }).pipe(Effect.provide(memorySearch))
)

it.effect("SE-41: more than a thousand matches are reported as truncated, and the newest are ranked", () =>
  Effect.gen(function* () {
    const [log, id] = [yield* EventLog, session()]
    yield* log.append(id, [created, ...Array.from({ length: 1_001 }, (_, at) => admitted(message(), `heron ${at}`))])
    const page = yield* found("heron")
    assert.isTrue(page.truncated)
    assert.strictEqual(page.items[0]?.matches, 1_000)
    assert.isFalse((yield* found("heron 1000")).truncated)
    assert.strictEqual((yield* found("heron 0")).items.length, 1)
  }).pipe(Effect.provide(memorySearch))
)

it.effect("SE-33: after: and before: select by the time of the event", () =>
  Effect.gen(function* () {
    yield* TestClock.setTime(Date.UTC(2026, 0, 10, 12))
    const early = yield* prompted("heron")
    yield* TestClock.setTime(Date.UTC(2026, 0, 20, 12))
    const late = yield* prompted("heron")
    const ids = (query: string) => Effect.map(places(query), (all) => all.map(([id]) => id))
    assert.deepStrictEqual(yield* ids("heron before:2026-01-10T12:00:01Z"), [early])
    assert.deepStrictEqual(yield* ids("heron before:2026-01-10T12:00Z"), [])
    assert.deepStrictEqual(yield* ids("after:2026-01-20"), [late])
    assert.deepStrictEqual(yield* ids("heron after:9d before:2026-01-11"), [])
    assert.sameMembers(yield* ids("heron after:2026-01"), [early, late])
  }).pipe(Effect.provide(memorySearch))
)

it.effect(
  "SE-30: cwd: finds a folder and the ones below, also relative to the caller's; title: and session: select",
  () =>
    Effect.gen(function* () {
      const [here, below, other] = [
        yield* prompted("heron", "/work/a"),
        yield* prompted("heron", "/work/a/b"),
        yield* prompted("heron", "/work/ab")
      ]
      const ids = (query: string, directory = "/") =>
        Effect.map(places(query, { directory }), (all) => all.map(([id]) => id))
      assert.sameMembers(yield* ids("heron cwd:/work/a"), [here, below])
      assert.sameMembers(yield* ids("heron cwd:.", "/work/a"), [here, below])
      assert.sameMembers(yield* ids("cwd:../ab", "/work/a"), [other])
      assert.sameMembers(yield* ids("heron cwd:/"), [here, below, other])
      assert.deepStrictEqual(yield* ids(`session:${other}`), [other])
      assert.deepStrictEqual(yield* ids("session:none heron"), [])
      assert.sameMembers(yield* ids("heron -stork"), [here, below, other])
      assert.deepStrictEqual(yield* ids("-heron"), [])
    }).pipe(Effect.provide(memorySearch))
)

it.effect(
  "SE-12: case and the accents of Latin letters do not matter; parts of Chinese, Japanese and Thai sentences are found",
  () =>
    Effect.gen(function* () {
      yield* prompted("Über die Café-Frage: Ελλάδα, ПРИВЕТ")
      yield* prompted("東京都の天気を教えてください")
      yield* prompted("สวัสดีชาวโลก")
      for (const query of ["uber", "cafe frage", "CAFÉ", "ελλάδα", "привет"]) {
        assert.strictEqual((yield* places(query)).length, 1, query)
      }
      for (const query of ["京都", "天気", "東京", "教えて", "ชาวโลก", '"の天気"']) {
        const { items } = yield* found(query)
        assert.strictEqual(items.length, 1, query)
        const [hit] = items[0]?.hits ?? []
        const marked = hit?.marks.map(([from, to]) => hit.snippet.slice(from, to)).join("")
        assert.strictEqual(marked, query.replaceAll('"', ""))
      }
      assert.strictEqual((yield* places("都東")).length, 0)
    }).pipe(Effect.provide(memorySearch))
)

it.scoped("SE-43: a snippet is one line of bounded length with its marks inside, whatever the text", () =>
  Effect.gen(function* () {
    const table = yield* SqlSearch.openTable
    const piece = fc.oneof(
      fc.string(),
      fc.constantFrom("heron", "東京", "\u2061", "\n\n", "x".repeat(900), "\0", "\u200b")
    )
    yield* Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(fc.array(piece, { maxLength: 30 }), async (pieces) => {
          const [shown] = await Effect.runPromise(SqlSearch.makeSnippets(table, [pieces.join(" ")], '"heron"'))
          const { marks = [], snippet = "" } = shown ?? {}
          assert.isAtMost(snippet.length, 322)
          assert.notMatch(snippet, /[\n\u2061\u2062\u200b]/)
          for (const [from, to] of marks) assert.isTrue(from >= 0 && from < to && to <= snippet.length)
          if (pieces.includes("heron")) {
            assert.include(
              marks.map(([from, to]) => snippet.slice(from, to).toLowerCase()),
              "heron"
            )
          }
        }),
        { numRuns: cases(60) }
      )
    )
  })
)

it.scoped("SE-44: matches are read backwards by key: no document is scanned and nothing is sorted", () =>
  Effect.gen(function* () {
    const filename = yield* temporaryDatabase
    yield* Effect.provide(Effect.zipRight(begun(session(), 3), places("answer")), searchAt(filename))
    const index = yield* openIndex(searchPath(filename))
    const range = { first: 0, last: 1_000 }
    const plan = (statement: { readonly compile: () => readonly [string, ReadonlyArray<unknown>] }) => {
      const [text, parameters] = statement.compile()
      return Effect.map(index.unsafe<{ readonly detail: string }>(`EXPLAIN QUERY PLAN ${text}`, parameters), (rows) =>
        rows.map(({ detail }) => detail)
      )
    }
    const match = '(text : "answer" AND tag : "ruser") NOT (text : "x")'
    const details = [
      ...(yield* plan(candidatesOf(index, match, range, { after: undefined, before: undefined }))),
      ...(yield* plan(index`SELECT position FROM (${newest(index, match, range, 10)})`))
    ]
    assert.isTrue(details.some((detail) => detail.startsWith("SCAN terms VIRTUAL TABLE INDEX")))
    for (const detail of details) {
      assert.notInclude(detail, "TEMP B-TREE")
      assert.match(
        detail,
        /^(?:CO-ROUTINE|SCAN terms VIRTUAL TABLE INDEX|SCAN m$|SCAN \(|SEARCH d USING INTEGER PRIMARY KEY)/
      )
    }
  })
)

it.effect("SE-44: sessions are selected from the log by key, or in the order of their last use", () =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const rows = yield* sql<{ readonly detail: string }>`EXPLAIN QUERY PLAN
      SELECT q.session, s.id, s.title, s.directory FROM event_sequence q JOIN session s ON s.id = q.session_id
        WHERE q.session IN (SELECT value FROM json_each('[1]'))`
    for (const { detail } of rows) assert.notMatch(detail, /^SCAN (?:q|s)\b/)
  }).pipe(Effect.provide(memorySearch))
)
