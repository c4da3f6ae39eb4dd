/** The index of a house: made of its sessions alone. */
import { assert, it } from "@effect/vitest"
import { FastCheck as fc } from "effect"
import { cwdHash } from "../../packages/files/src/layout/Layout.ts"
import { type IndexEntry, indexFiles } from "../../packages/files/src/render/Values.ts"
import { forAll } from "../support/Cases.ts"

const entry = (session: string, rest: Partial<IndexEntry> = {}): IndexEntry => ({
  session,
  cwd: "/work",
  updatedAtMs: 0,
  position: 0,
  createdPosition: 0,
  ...rest
})

it("IX-1: the list has a name a line, the latest update first", () => {
  const files = indexFiles([
    entry("a", { updatedAtMs: 1 }),
    entry("b", { updatedAtMs: 3 }),
    entry("c", { updatedAtMs: 2 })
  ])
  assert.strictEqual(files.get("list"), "b\nc\na\n")
})

it("IX-2: a run makes its session the current one and that of its folder", () => {
  const sessions = [
    entry("review-1", { updatedAtMs: 5, createdPosition: 9, position: 20 }),
    entry("default", { updatedAtMs: 6, createdPosition: 1, runStartedPosition: 30, position: 31 })
  ]
  const files = indexFiles(sessions)
  assert.strictEqual(files.get("list"), "default\nreview-1\n")
  assert.strictEqual(files.get("current"), "default\n")
  assert.strictEqual(files.get(`by-cwd/${cwdHash("/work")}`), "default\n")
})

it("IX-4: sessions of the same time are in the order of their last events, then of their names", () => {
  const same = [entry("b", { position: 1 }), entry("a", { position: 1 }), entry("c", { position: 2 })]
  assert.strictEqual(indexFiles(same).get("list"), "c\na\nb\n")
})

it("FI-16: while no session has run, the one that was created last is current", () => {
  const files = indexFiles([entry("a", { createdPosition: 1, updatedAtMs: 9 }), entry("b", { createdPosition: 2 })])
  assert.strictEqual(files.get("current"), "b\n")
})

it("FI-16: a session that has run comes before one that was created later", () => {
  const ran = entry("a", { createdPosition: 1, runStartedPosition: 2 })
  assert.strictEqual(indexFiles([entry("b", { createdPosition: 3 }), ran]).get("current"), "a\n")
})

it("FI-17: each folder has the session that ran there last", () => {
  const files = indexFiles([
    entry("a", { cwd: "/a", runStartedPosition: 1 }),
    entry("b", { cwd: "/b", runStartedPosition: 2 }),
    entry("c", { cwd: "/a", createdPosition: 7 })
  ])
  assert.strictEqual(files.get(`by-cwd/${cwdHash("/a")}`), "a\n")
  assert.strictEqual(files.get(`by-cwd/${cwdHash("/b")}`), "b\n")
  assert.strictEqual(files.size, 4)
})

it("FI-14: no session, no index", () => assert.strictEqual(indexFiles([]).size, 0))

it("IX-4: the index does not depend on the order in which its sessions are found", () => {
  const entries = fc.uniqueArray(
    fc.record({
      session: fc.constantFrom("a", "b", "B", "list", "current", "x.y"),
      cwd: fc.constantFrom("/", "/work", "/w\n"),
      updatedAtMs: fc.nat(2),
      position: fc.nat(2),
      createdPosition: fc.nat(2),
      runStartedPosition: fc.option(fc.nat(2), { nil: undefined })
    }),
    { selector: ({ session }) => session }
  )
  forAll([entries, fc.nat(100)], 40, (found, turn) => {
    const by = turn % Math.max(1, found.length)
    const turned = [...found.slice(by), ...found.slice(0, by)].toReversed()
    assert.deepStrictEqual([...indexFiles(turned)].toSorted(), [...indexFiles(found)].toSorted())
    const names = (indexFiles(found).get("list") ?? "").split("\n").slice(0, -1)
    assert.deepStrictEqual(names.toSorted(), found.map(({ session }) => session).toSorted())
  })
})
