/** Which files a session has touched, over all its compactions. */
import { assert, it } from "@effect/vitest"
import { FastCheck as fc } from "effect"
import {
  fileOperations,
  maxFiles,
  noFiles,
  splitFiles,
  type TouchedFiles,
  withFiles
} from "../../packages/core/src/compaction/Summary.ts"
import { results } from "./support/Histories.ts"

const paths = ({ modified, read }: TouchedFiles) => ({ read: read.paths, modified: modified.paths })
const reads = (...names: ReadonlyArray<string>) =>
  results(0, ...names.map((path) => ({ name: "read", structured: { type: "text", path } })))
const writes = (...names: ReadonlyArray<string>) =>
  results(0, ...names.map((path) => ({ name: "write", structured: { path } })))

it("CP-19: files come from completed calls, by what the result says of them", () => {
  const found = fileOperations(
    [
      results(
        0,
        { name: "read", structured: { type: "text", path: "src/a.ts" } },
        { name: "read", structured: { type: "directory", path: "src" } },
        { name: "read", input: { path: "tool-output:x" }, structured: { type: "text", path: "x" } },
        { name: "read", state: "error", input: { path: "gone.ts" } },
        { name: "write", structured: { path: "b.ts" } },
        { name: "edit", structured: { path: "c.ts", replacements: 1 } },
        { name: "edit", state: "running", input: { path: "not-yet.ts" } },
        { name: "bash", structured: { path: "elsewhere" } }
      ),
      results(1, {
        name: "apply_patch",
        structured: {
          files: [{ path: "old.ts", change: "move", movedTo: "new.ts" }, { path: "d.ts", change: "delete" }, 7]
        }
      })
    ],
    noFiles
  )
  assert.deepStrictEqual(paths(found), { read: ["src/a.ts"], modified: ["b.ts", "c.ts", "d.ts", "new.ts", "old.ts"] })
})

it("CP-20: the names of older formats count as ours, and a listing is no read", () => {
  const found = fileOperations(
    [
      results(
        0,
        { name: "read_file", input: { path: "a" } },
        { name: "write_file", input: { file_path: "b" } },
        { name: "list_directory", input: { path: "c" } }
      )
    ],
    noFiles
  )
  assert.deepStrictEqual(paths(found), { read: ["a"], modified: ["b"] })
})

it("CP-21: files add up over compactions, and what was modified is not listed as read", () => {
  const one = fileOperations([reads("a", "b", "c"), writes("m")], noFiles)
  const two = fileOperations([writes("b"), reads("m", "d")], one)
  assert.deepStrictEqual(paths(two), { read: ["a", "c", "d"], modified: ["b", "m"] })
})

it("CP-22: over the bound the newest stay, and the others are counted", () => {
  const many = Array.from({ length: maxFiles }, (_, at) => `f${String(at).padStart(4, "0")}`)
  const full = fileOperations([reads(...many)], noFiles)
  assert.deepStrictEqual(full.read, { paths: many, leftOut: 0 })
  const more = fileOperations([reads("a-newest", "f0000")], full)
  assert.strictEqual(more.read.paths.length, maxFiles)
  assert.includeMembers([...more.read.paths], ["a-newest", "f0000"])
  assert.strictEqual(more.read.leftOut, 1)
  const summary = withFiles("S", more)
  assert.include(summary, "(up to 1 earlier ones are left out)\n</read-files>")
  assert.strictEqual(fileOperations([reads("b-newest")], splitFiles(summary).files).read.leftOut, 2)
})

const path = fc.stringMatching(/^[a-z/.]{1,8}$/)

it.prop(
  "CP-21: what is read and modified is the same in one compaction or in two",
  [fc.array(fc.tuple(fc.boolean(), path)), fc.nat(20)],
  ([operations, cut]) => {
    const messages = operations.map(([write, name]) => (write ? writes(name) : reads(name)))
    const twice = fileOperations(messages.slice(cut), fileOperations(messages.slice(0, cut), noFiles))
    assert.deepStrictEqual(twice, fileOperations(messages, noFiles))
    assert.isTrue(twice.read.paths.every((name) => !twice.modified.paths.includes(name)))
  }
)

it.prop(
  "CP-28: a checkpoint's lists of files are read back as they were written, and the summary beside them",
  [fc.array(fc.tuple(fc.boolean(), path)), fc.string().map((value) => `S${value.trim()}.`)],
  ([operations, summary]) => {
    const files = fileOperations(
      operations.map(([write, name]) => (write ? writes(name) : reads(name))),
      noFiles
    )
    assert.deepStrictEqual(splitFiles(withFiles(summary, files)), { summary, files })
  }
)

it("CP-22: a path that is no line of a list is left out of it", () => {
  const found = fileOperations([reads("ok", "a\nb", "</read-files>", "x".repeat(5_000), "")], noFiles)
  assert.deepStrictEqual(found.read.paths, ["ok"])
})
