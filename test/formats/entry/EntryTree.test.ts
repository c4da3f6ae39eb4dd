/** Tests the tree of entries. Spec: FM-30..FM-34 in specs/formats.md. */
import { assert, describe, it } from "@effect/vitest"
import { FastCheck as fc, Struct } from "effect"
import { type Entry, entryOf } from "../../../packages/formats/src/entry/Entry.ts"
import * as SessionContext from "../../../packages/formats/src/entry/SessionContext.ts"
import { cases } from "../../support/Cases.ts"
import { entries, user } from "../support/Entries.ts"

const record = (id: string, parentId: string | null, more: object = {}): Entry =>
  entryOf({ type: "x", id, parentId, ...more })

const pathOf = (tree: SessionContext.EntryTree, id: string) => {
  const leaf = tree.get(id)
  return leaf === undefined ? [] : tree.path(leaf).map((entry) => entry.id)
}

const shape = (nodes: ReadonlyArray<SessionContext.Node>): ReadonlyArray<unknown> =>
  nodes.map(({ children, entry }) => (children.length === 0 ? entry.id : [entry.id, ...shape(children)]))

describe("EntryTree", () => {
  it("FM-30: entries keep their order, and the last entry of an id is the one that the id means", () => {
    const [first, second] = [record("a", null), record("a", null, { n: 2 })]
    const tree = SessionContext.make([first, record("b", "a")])
    tree.add(second)
    assert.deepStrictEqual(tree.entries.map(Struct.get("id")), ["a", "b", "a"])
    assert.strictEqual(tree.get("a"), second)
    assert.strictEqual(tree.last(), second)
    assert.deepStrictEqual(pathOf(tree, "b"), ["a", "b"])
  })

  it("FM-31: a missing parent, the entry itself and a repeated entry end a path", () => {
    const tree = SessionContext.make([
      record("orphan", "gone"),
      record("child", "orphan"),
      record("self", "self"),
      record("x", "z"),
      record("y", "x"),
      record("z", "y")
    ])
    assert.deepStrictEqual(pathOf(tree, "child"), ["orphan", "child"])
    assert.deepStrictEqual(pathOf(tree, "self"), ["self"])
    assert.deepStrictEqual(pathOf(tree, "y"), ["z", "x", "y"])
  })

  it("FM-32: roots have no parent, themselves or a missing one as parent; a cycle begins with its first entry", () => {
    const tree = SessionContext.make([
      record("a", null),
      record("late", "a", { timestamp: 9 }),
      record("early", "a", { timestamp: 3 }),
      record("self", "self"),
      record("orphan", "gone"),
      record("x", "y"),
      record("y", "x")
    ])
    assert.deepStrictEqual(shape(tree.roots()), [["a", "early", "late"], "self", "orphan", ["x", "y"]])
  })

  it("FM-33: the last label of an entry wins, an empty one removes it", () => {
    const label = (targetId: string, text?: string) => ({ type: "label", targetId, label: text })
    const tree = SessionContext.make(
      entries(
        user("a"),
        label("e1", "one"),
        label("e1", " two "),
        label("e2", "x"),
        label("e2", ""),
        label("e3", "y"),
        label("e3")
      )
    )
    assert.deepStrictEqual(["e1", "e2", "e3"].map(tree.label), ["two", undefined, undefined])
  })

  it("FM-34: a chain of 100,000 entries is walked without recursion", () => {
    const tree = SessionContext.make(
      Array.from({ length: 100_000 }, (_, n) => record(`${n}`, n === 0 ? null : `${n - 1}`))
    )
    assert.strictEqual(pathOf(tree, "99999").length, 100_000)
    let depth = 0
    for (let nodes = tree.roots(); nodes[0] !== undefined; nodes = nodes[0].children) depth++
    assert.strictEqual(depth, 100_000)
  })

  it("FM-34: in any graph, each path ends without a repetition and the roots lead to each id once", () => {
    const id = fc.constantFrom("a", "b", "c", "d", "e", "f")
    fc.assert(
      fc.property(fc.array(fc.tuple(id, fc.option(id)), { maxLength: 12 }), (pairs) => {
        const tree = SessionContext.make(pairs.map(([own, parent]) => record(own, parent)))
        for (const [own] of pairs) {
          const path = pathOf(tree, own)
          assert.strictEqual(new Set(path).size, path.length)
          assert.strictEqual(path.at(-1), own)
        }
        const reached: Array<string> = []
        for (const waiting = [...tree.roots()]; waiting.length > 0;) {
          const node = waiting.pop()
          reached.push(node?.entry.id ?? "")
          waiting.push(...(node?.children ?? []))
        }
        assert.deepStrictEqual(reached.toSorted(), [...new Set(pairs.map(([own]) => own))].toSorted())
      }),
      { numRuns: cases(40) }
    )
  })
})
