import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Answer } from "../../packages/core/src/permission/PermissionAsker.ts"
import { replaceText } from "../../packages/tools/src/Edit.ts"
import { patchOf } from "./PatchTree.ts"
import { makeWorkbench, textOf } from "./Workbench.ts"

const read = (...path: ReadonlyArray<string>) => readFileSync(join(...path), "utf8")

describe("write", () => {
  it.scoped("TO-51: a file is created with its folders, and replaced with its mode kept; nothing else is left", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      const created = yield* bench.succeed("write", { path: "a/b/c.txt", content: "one \u20ac" })
      assert.deepStrictEqual(created.structured, { path: "a/b/c.txt", bytes: 7, created: true })
      chmodSync(join(bench.folder, "a/b/c.txt"), 0o750)
      const replaced = yield* bench.succeed("write", { path: "a/b/c.txt", content: "two" })
      assert.strictEqual(replaced.structured["created"], false)
      assert.strictEqual(read(bench.folder, "a/b/c.txt"), "two")
      assert.strictEqual(statSync(join(bench.folder, "a/b/c.txt")).mode & 0o777, 0o750)
      assert.deepStrictEqual(readdirSync(join(bench.folder, "a/b")), ["c.txt"])
    })
  )

  it.scoped("TO-51: a link inside the Location keeps being a link, and what it points to is written", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      writeFileSync(join(bench.folder, "real"), "old")
      symlinkSync("real", join(bench.folder, "link"))
      const output = yield* bench.succeed("write", { path: "link", content: "new" })
      assert.strictEqual(output.structured["path"], "real")
      assert.strictEqual(read(bench.folder, "real"), "new")
      assert.strictEqual(read(bench.folder, "link"), "new")
    })
  )

  const attacks: ReadonlyArray<readonly [what: string, path: string, type: string]> = [
    ["an absolute path outside", "/tmp/daybook-escape", "path.outside"],
    ["a path of Windows", "C:\\daybook-escape", "path.invalid"],
    ["a path through the parent", "../outside/new", "path.outside"],
    ["a new file behind a link to outside", "link/new", "path.outside"],
    ["new folders behind a link to outside", "link/a/b/new", "path.outside"],
    ["a link to a file outside", "link-file", "path.outside"],
    ["a broken link to outside", "broken", "path.invalid"],
    ["a new file behind a broken link", "broken/new", "path.invalid"],
    ["a folder", "folder", "file.access"],
    ["the Location itself", ".", "file.access"],
    ["a path below a file", "file/new", "file.access"]
  ]
  it.scoped.each(attacks)("TO-52: %s is refused, nothing is asked and nothing changes outside", ([, path, type]) =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench({ rules: [] })
      writeFileSync(join(bench.outside, "there"), "untouched")
      symlinkSync(bench.outside, join(bench.folder, "link"))
      symlinkSync(join(bench.outside, "there"), join(bench.folder, "link-file"))
      symlinkSync(join(bench.outside, "not-there"), join(bench.folder, "broken"))
      mkdirSync(join(bench.folder, "folder"))
      writeFileSync(join(bench.folder, "file"), "")
      const error = yield* bench.fail("write", { path, content: "escaped" })
      assert.strictEqual(error.type, type)
      assert.strictEqual(bench.asked.length, 0)
      assert.deepStrictEqual(readdirSync(bench.outside), ["there"])
      assert.strictEqual(read(bench.outside, "there"), "untouched")
    })
  )

  it.scoped("TO-52: a folder that becomes a link while a person is asked is not written through", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench({
        rules: [],
        answer: (): Effect.Effect<Answer> =>
          Effect.sync(() => (symlinkSync(bench.outside, join(bench.folder, "new")), Answer.Once()))
      })
      const error = yield* bench.fail("write", { path: "new/file", content: "escaped" })
      assert.strictEqual(error.type, "path.outside")
      assert.deepStrictEqual(readdirSync(bench.outside), [])
    })
  )

  it.scoped("TO-53: without permission nothing is written, and the question names the file", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench({ rules: [] })
      const error = yield* bench.fail("write", { path: "a/b", content: "text" })
      assert.strictEqual(error.type, "permission.denied")
      assert.isFalse(existsSync(join(bench.folder, "a")))
      assert.deepStrictEqual(
        bench.asked.map(({ permission, resources, title }) => [permission, resources, title]),
        [["edit", ["a/b"], "Create a/b (4 bytes)"]]
      )
    })
  )
})

describe("edit", () => {
  it.scoped("TO-54: a text that occurs once is replaced, and the mode stays", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      writeFileSync(join(bench.folder, "a"), "\uFEFFone $& two\n", { mode: 0o640 })
      yield* bench.succeed("edit", { path: "a", oldText: "$& two", newText: "$1 three" })
      assert.strictEqual(read(bench.folder, "a"), "\uFEFFone $1 three\n")
      assert.strictEqual(statSync(join(bench.folder, "a")).mode & 0o777, 0o640)
    })
  )

  it.scoped("TO-54: a text that is not there, or there more than once, is refused with the count", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      writeFileSync(join(bench.folder, "a"), "x y x y x")
      const none = yield* bench.fail("edit", { path: "a", oldText: "z", newText: "w" })
      assert.include(none.message, "0 times")
      const many = yield* bench.fail("edit", { path: "a", oldText: "x", newText: "w" })
      assert.include(many.message, "3 times")
      assert.include((yield* bench.fail("edit", { path: "a", oldText: "x", newText: "x" })).message, "the same")
      assert.strictEqual(read(bench.folder, "a"), "x y x y x")
      const all = yield* bench.succeed("edit", { path: "a", oldText: "x", newText: "w", replaceAll: true })
      assert.strictEqual(all.structured["replacements"], 3)
      assert.strictEqual(read(bench.folder, "a"), "w y w y w")
    })
  )

  it("TO-55: the line endings of a file are kept, whichever the given texts have", () => {
    assert.deepStrictEqual(replaceText("a\r\nb\r\nc", "a\nb", "x\ny\nz"), {
      content: "x\r\ny\r\nz\r\nc",
      replacements: 1
    })
    assert.deepStrictEqual(replaceText("a\nb\n", "a\nb", "x\ny"), { content: "x\ny\n", replacements: 1 })
  })

  const near: ReadonlyArray<readonly [what: string, before: string, oldText: string, newText: string, after: string]> =
    [
      [
        "typographic quotes and dashes, which stay where the change does not touch them",
        "It\u2019s \u201Cgood\u201D \u2014 or not\n",
        `It's "good" - or not`,
        `It's "good" - or bad`,
        "It\u2019s \u201Cgood\u201D \u2014 or bad\n"
      ],
      [
        "no-break spaces",
        "10\u00A0km and 20\u202Fkm\n",
        "10 km and 20 km",
        "10 km and 30 km",
        "10\u00A0km and 30\u202Fkm\n"
      ],
      [
        "tabs for blanks; new lines get the file's indentation",
        "if (x) {\n\tfirst()\n\tsecond()\n}\n",
        "if (x) {\n    first()\n    second()\n}",
        "if (x) {\n    first()\n    if (y) {\n        third()\n    }\n    second()\n}",
        "if (x) {\n\tfirst()\n\tif (y) {\n\t\tthird()\n\t}\n\tsecond()\n}\n"
      ],
      ["blanks at the end of lines", "one  \ntwo\t\nthree\n", "one\ntwo\nthree", "one\n2\nthree", "one  \n2\nthree\n"],
      ["mixed line ends", "a\r\nb\nc\r\n", "a\nb\nc", "a\nB\nc", "a\r\nB\nc\r\n"],
      ["CR LF in the call, LF in the file", "a\nb\nc\n", "a\r\nb", "a\r\nB", "a\nB\nc\n"]
    ]
  it.scoped.each(near)(
    "TO-541, TO-542: a near match, %s, is replaced and named",
    ([, before, oldText, newText, after]) =>
      Effect.gen(function* () {
        const bench = yield* makeWorkbench()
        writeFileSync(join(bench.folder, "a"), before)
        const output = yield* bench.succeed("edit", { path: "a", oldText, newText })
        assert.strictEqual(read(bench.folder, "a"), after)
        assert.match(
          textOf(output),
          /^Edited a: 1 replaced\. It was a near match: from line 1 on the file had other blanks/
        )
      })
  )

  it.scoped("TO-541: near matches in several places, and letters that differ, are refused", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      const before = "\tcall()\n  call()\nCall\u2019s\n"
      writeFileSync(join(bench.folder, "a"), before)
      for (const replaceAll of [false, true]) {
        const many = yield* bench.fail("edit", { path: "a", oldText: "    call()", newText: "x", replaceAll })
        assert.include(many.message, "2 places are near it")
      }
      assert.include((yield* bench.fail("edit", { path: "a", oldText: "call's", newText: "x" })).message, "0 times")
      assert.strictEqual(read(bench.folder, "a"), before)
      // An exact match is never taken for a near one.
      writeFileSync(join(bench.folder, "b"), "it's\nit\u2019s\n")
      assert.strictEqual(
        textOf(yield* bench.succeed("edit", { path: "b", oldText: "it's", newText: "x" })),
        "Edited b: 1 replaced."
      )
    })
  )

  it.scoped("TO-541: a patch fits near lines too, keeps those of the file, and says so", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      writeFileSync(join(bench.folder, "a"), "def f():\n\treturn \u201Cx\u201D\n\n# it\u2019s\r\nend\n")
      const patch = [
        "*** Begin Patch",
        "*** Update File: a",
        "@@",
        " def f():",
        '-    return "x"',
        "+    if y:",
        '+        return "z"',
        " ",
        " # it's",
        "*** End Patch"
      ].join("\n")
      const output = yield* bench.succeed("apply_patch", { patch })
      assert.strictEqual(read(bench.folder, "a"), 'def f():\n\tif y:\n\t\treturn "z"\n\n# it\u2019s\r\nend\n')
      assert.include(textOf(output), "Near match: the hunks at lines 3 of the patch differ from their files in blanks")
      writeFileSync(join(bench.folder, "b"), "\tx\n  x\n")
      const twice = ["*** Begin Patch", "*** Update File: b", "@@", "-    x", "+    y", "*** End Patch"].join("\n")
      assert.include((yield* bench.fail("apply_patch", { patch: twice })).message, "it fits at lines 1, 2")
    })
  )

  const inEncodings: ReadonlyArray<readonly [name: string, encode: (text: string) => Buffer]> = [
    ["Latin-1", (text) => Buffer.from(text, "latin1")],
    ["UTF-16, little-endian", (text) => Buffer.from(`\uFEFF${text}`, "utf16le")],
    ["UTF-16, big-endian", (text) => Buffer.from(`\uFEFF${text}`, "utf16le").swap16()]
  ]
  it.scoped.each(inEncodings)("TO-540: a file in %s is changed in its encoding by each tool", ([name, encode]) =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      const bytes = () => readFileSync(join(bench.folder, "a"))
      writeFileSync(join(bench.folder, "a"), encode("caf\u00e9\nth\u00e9\n"))
      yield* bench.succeed("edit", { path: "a", oldText: "th\u00e9", newText: "\u00e0 la" })
      assert.deepStrictEqual(bytes(), encode("caf\u00e9\n\u00e0 la\n"))
      const hunk = ["@@", " caf\u00e9", "+\u00fc", "*** End Patch"]
      yield* bench.succeed("apply_patch", { patch: ["*** Begin Patch", "*** Update File: a", ...hunk].join("\n") })
      assert.deepStrictEqual(bytes(), encode("caf\u00e9\n\u00fc\n\u00e0 la\n"))
      const written = yield* bench.succeed("write", { path: "a", content: "\u00f1\n" })
      assert.deepStrictEqual(bytes(), encode("\u00f1\n"))
      assert.include(textOf(written), "The file keeps")
      if (name !== "Latin-1") return
      for (const [tool, input] of [
        ["edit", { path: "a", oldText: "\u00f1", newText: "\u4f60" }],
        ["write", { path: "a", content: "\u4f60" }]
      ] as const) {
        const error = yield* bench.fail(tool, input)
        assert.include(error.message, 'is Windows-1252 (Latin-1), which does not have the character "\u4f60"')
      }
      assert.deepStrictEqual(bytes(), encode("\u00f1\n"))
    })
  )

  it.scoped("TO-543: write keeps the byte order mark and the line ends of the file that it replaces, and says so", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      writeFileSync(join(bench.folder, "a"), "\uFEFFone\r\ntwo\r\n")
      const output = yield* bench.succeed("write", { path: "a", content: "three\nfour\n" })
      assert.strictEqual(read(bench.folder, "a"), "\uFEFFthree\r\nfour\r\n")
      assert.strictEqual(
        textOf(output),
        "Replaced a: 16 bytes. The file keeps its byte order mark and its line ends CR LF."
      )
      // What the content says itself stays.
      writeFileSync(join(bench.folder, "b"), "one\ntwo\n")
      yield* bench.succeed("write", { path: "b", content: "a\r\nb\r\n" })
      assert.strictEqual(read(bench.folder, "b"), "a\r\nb\r\n")
    })
  )

  it.scoped("TO-55: a file that is no text is refused and stays as it is", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      const bytes = Buffer.from([0x61, 0xff, 0, 0x62])
      writeFileSync(join(bench.folder, "a"), bytes)
      const error = yield* bench.fail("edit", { path: "a", oldText: "a", newText: "b" })
      assert.include(error.message, "not text in UTF-8")
      assert.deepStrictEqual(readFileSync(join(bench.folder, "a")), bytes)
      assert.strictEqual((yield* bench.fail("edit", { path: "none", oldText: "a", newText: "b" })).type, "file.missing")
    })
  )

  it.scoped("TO-53: edits of one file at the same time are all there in the end", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      const names = Array.from({ length: 20 }, (_, index) => `<${index}>`)
      writeFileSync(join(bench.folder, "a"), names.join("\n"))
      yield* Effect.forEach(
        names,
        (name) => bench.succeed("edit", { path: "a", oldText: name, newText: `done ${name}` }),
        { concurrency: "unbounded" }
      )
      assert.strictEqual(read(bench.folder, "a"), names.map((name) => `done ${name}`).join("\n"))
    })
  )
})

describe("redacted text", () => {
  it.scoped("TO-56: text with the mark of a secret is refused where the file has none, and nothing changes", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      writeFileSync(join(bench.folder, "a"), "key = secret\nname = x\n")
      const shown = "key = <redacted>\nname = y\n"
      const calls: ReadonlyArray<readonly [tool: string, input: unknown]> = [
        ["write", { path: "a", content: shown }],
        ["write", { path: "new", content: shown }],
        ["edit", { path: "a", oldText: "secret", newText: "<redacted>" }],
        ["apply_patch", { patch: patchOf("*** Update File: a", "-key = secret", "+key = <redacted>") }],
        ["apply_patch", { patch: patchOf("*** Update File: a", "*** Move to: b", "-key = secret", "+<redacted>") }],
        ["apply_patch", { patch: patchOf("*** Add File: new", "+<redacted>") }]
      ]
      for (const [tool, input] of calls) {
        const refused = yield* bench.fail(tool, input)
        assert.strictEqual(refused.type, "edit.refused", tool)
        assert.include(refused.message, "<redacted>")
      }
      assert.strictEqual(read(bench.folder, "a"), "key = secret\nname = x\n")
      assert.deepStrictEqual(readdirSync(bench.folder), ["a"])
    })
  )

  it.scoped("TO-56: a mark that the file already has may stay", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      writeFileSync(join(bench.folder, "a"), "say <redacted>\nx\n")
      yield* bench.succeed("edit", { path: "a", oldText: "x", newText: "y" })
      yield* bench.succeed("write", { path: "a", content: "now <redacted>\ny\n" })
      yield* bench.succeed("apply_patch", { patch: patchOf("*** Update File: a", "-y", "+z") })
      assert.strictEqual(read(bench.folder, "a"), "now <redacted>\nz\n")
    })
  )
})
