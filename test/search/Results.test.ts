/** Order and groups of results, their snippets, and the plans that read them. */
import { assert, it } from "@effect/vitest"
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, FastCheck as fc } from "effect"
import { type Candidate, candidatesOf, newest, rank, scoreOf } from "../../packages/log/src/search/Matching.ts"
import * as SqlSearch from "../../packages/log/src/search/SqlSearch.ts"
import { openIndex, searchPath } from "../../packages/log/src/storage/SearchFile.ts"
import { temporaryDatabase } from "../support/Database.ts"
import { cases, forAll } from "../support/Cases.ts"
import { session } from "../support/Logs.ts"
import { begun } from "../support/Pruning.ts"
import { memorySearch, places, searchAt } from "./support/Searching.ts"

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
