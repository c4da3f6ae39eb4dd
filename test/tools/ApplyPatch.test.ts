import {
  chmodSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FastCheck as fc } from "effect"
import { Answer } from "../../packages/core/src/permission/PermissionAsker.ts"
import { patchOf, treeOf } from "./PatchTree.ts"
import { makeWorkbench, textOf } from "./Workbench.ts"

type Bench = Effect.Effect.Success<ReturnType<typeof makeWorkbench>>

const put = (bench: Bench, files: Readonly<Record<string, string | Uint8Array>>) => {
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(join(bench.folder, name, ".."), { recursive: true })
    writeFileSync(join(bench.folder, name), content)
  }
}

describe("apply_patch", () => {
  it.scoped("TO-14: files are added, updated, moved and deleted by one patch, and nothing else is left", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      put(bench, {
        "u.txt": "a\nb\nc\n",
        "m.sh": "x\n",
        "p.bin": new Uint8Array([0xff, 0]),
        "d.txt": "d",
        "keep/k": "k"
      })
      chmodSync(join(bench.folder, "u.txt"), 0o640)
      chmodSync(join(bench.folder, "m.sh"), 0o755)
      chmodSync(join(bench.folder, "p.bin"), 0o700)
      const output = yield* bench.succeed("apply_patch", {
        patch: patchOf(
          "*** Add File: new/deep/a.txt",
          "+one",
          "+two",
          "*** Update File: u.txt",
          "@@",
          " a",
          "-b",
          "+B",
          "*** Update File: m.sh",
          "*** Move to: keep/m.sh",
          "-x",
          "+y",
          "*** Update File: p.bin",
          "*** Move to: q.bin",
          "*** Delete File: d.txt"
        )
      })
      assert.deepStrictEqual(output.structured, {
        files: [
          { path: "new/deep/a.txt", change: "add" },
          { path: "u.txt", change: "update" },
          { path: "m.sh", change: "move", movedTo: "keep/m.sh" },
          { path: "p.bin", change: "move", movedTo: "q.bin" },
          { path: "d.txt", change: "delete" }
        ]
      })
      assert.strictEqual(
        textOf(output),
        "Applied the patch:\nA new/deep/a.txt\nM u.txt\nR m.sh -> keep/m.sh\nR p.bin -> q.bin\nD d.txt"
      )
      const added = (0o666 & ~process.umask()).toString(8)
      assert.deepStrictEqual(treeOf(bench.folder), {
        keep: "folder",
        "keep/k": `${added} k`,
        "keep/m.sh": "755 y\n",
        new: "folder",
        "new/deep": "folder",
        "new/deep/a.txt": `${added} one\ntwo\n`,
        "q.bin": "700 base64 /wA=",
        "u.txt": "640 a\nB\nc\n"
      })
      assert.strictEqual(statSync(join(bench.folder, "q.bin")).nlink, 1)
      assert.strictEqual(statSync(join(bench.folder, "u.txt")).nlink, 1)
    })
  )

  it.scoped("TO-14: all files of a patch are one question, moves with both their paths", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench({ rules: [] })
      put(bench, { a: "a\n", b: "b\n", c: "c\n" })
      const before = treeOf(bench.folder)
      const error = yield* bench.fail("apply_patch", {
        patch: patchOf(
          "*** Add File: n/new",
          "+x",
          "*** Update File: a",
          "*** Move to: a2",
          "*** Update File: b",
          "-b",
          "*** Delete File: c"
        )
      })
      assert.strictEqual(error.type, "permission.denied")
      assert.deepStrictEqual(
        bench.asked.map(({ permission, resources, title }) => [permission, resources, title]),
        [["edit", ["n/new", "a", "a2", "b", "c"], "Patch A n/new, R a -> a2, M b, D c"]]
      )
      assert.deepStrictEqual(treeOf(bench.folder), before)
    })
  )

  it.scoped("TO-14: a rule that denies one of the files refuses the whole patch", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench({
        rules: [
          { permission: "edit", resource: "*", verdict: "allow" },
          { permission: "edit", resource: "secret/*", verdict: "deny" }
        ]
      })
      put(bench, { a: "a\n" })
      const before = treeOf(bench.folder)
      const error = yield* bench.fail("apply_patch", {
        patch: patchOf("*** Update File: a", "*** Move to: secret/a", "*** Add File: b", "+b")
      })
      assert.strictEqual(error.type, "permission.denied")
      assert.deepStrictEqual(treeOf(bench.folder), before)
    })
  )

  const add = (path: string) => [`*** Add File: ${path}`, "+escaped"]
  const hostile: ReadonlyArray<readonly [what: string, lines: ReadonlyArray<string>, type: string, message: RegExp]> = [
    ["no patch", ["garbage"], "patch.invalid", /line 4 of the patch/],
    ["an absolute path outside", add("/tmp/daybook-escape"), "path.outside", /leads out/],
    ["an absolute path of another system", add("C:\\x"), "path.invalid", /Windows/],
    ["a path through the parent", add("../outside/new"), "path.outside", /leads out/],
    ["a path that leaves in its middle", add("folder/../../outside/new"), "path.outside", /leads out/],
    ["a NUL", add("a\0b"), "path.invalid", /NUL/],
    ["a new file behind a link to outside", add("link/new"), "path.outside", /leads out/],
    ["a new file behind a broken link", add("broken/new"), "path.invalid", /broken/],
    ["a new file in a loop of links", add("loop/new"), "file.access", /loop/],
    ["an update in a loop of links", ["*** Update File: loop", "-a"], "file.access", /loop/],
    ["an update of a file outside", ["*** Update File: link-file", "-untouched"], "path.outside", /leads out/],
    ["a deletion outside", ["*** Delete File: link/there"], "path.outside", /leads out/],
    ["a move to outside", ["*** Update File: file", "*** Move to: ../outside/file"], "path.outside", /leads out/],
    ["a move to behind a link", ["*** Update File: file", "*** Move to: link/file"], "path.outside", /leads out/],
    ["the Location itself", ["*** Delete File: ."], "file.access", /is a folder/],
    ["a folder", ["*** Delete File: folder"], "file.access", /is a folder/],
    ["a path below a file", add("file/new"), "file.access", /not a folder/],
    ["a name that is too long", add("n".repeat(300)), "file.access", /too long/],
    ["a new file that is there", add("file"), "edit.refused", /"file" already exists/],
    ["an update of what is not there", ["*** Update File: none", "-a"], "file.missing", /does not exist/],
    ["a deletion of what is not there", ["*** Delete File: none"], "file.missing", /does not exist/],
    ["a move onto a file", ["*** Update File: file", "*** Move to: file2"], "edit.refused", /"file2" already exists/],
    ["a move onto itself", ["*** Update File: file", "*** Move to: ./file"], "edit.refused", /named twice/],
    ["a deletion of a link", ["*** Delete File: link-inside"], "edit.refused", /is a symbolic link .*"file"/],
    ["a move of a link", ["*** Update File: link-inside", "*** Move to: n"], "edit.refused", /is a symbolic link/],
    [
      "a file twice",
      ["*** Update File: file", "-a", "*** Update File: file", "-b"],
      "edit.refused",
      /"file" is named twice \(lines 4 and 6 of the patch\)/
    ],
    [
      "a file twice by two names",
      ["*** Update File: file", "-a", "*** Delete File: folder/../file"],
      "edit.refused",
      /twice/
    ],
    [
      "a file twice by a link",
      ["*** Delete File: file", "*** Update File: link-inside", "-a"],
      "edit.refused",
      /twice/
    ],
    ["a new file twice", [...add("new"), ...add("./new")], "edit.refused", /twice/],
    [
      "two moves to one file",
      ["*** Update File: file", "*** Move to: n", "*** Update File: file2", "*** Move to: n"],
      "edit.refused",
      /twice/
    ],
    ["a file deleted and added", ["*** Delete File: file", ...add("file")], "edit.refused", /twice/],
    ["a new file below a new file", [...add("n"), ...add("n/m")], "edit.refused", /below another file/],
    ["a name that is JSON", add('{"a":"\u0007"}/../../x'), "path.outside", /leads out/]
  ]
  it.scoped.each(hostile)(
    "TO-14: %s is refused before anything is asked, and nothing changes",
    ([, lines, type, message]) =>
      Effect.gen(function* () {
        const bench = yield* makeWorkbench({ rules: [] })
        writeFileSync(join(bench.outside, "there"), "untouched")
        put(bench, { file: "a\nb\n", file2: "a\n", "folder/x": "" })
        symlinkSync(bench.outside, join(bench.folder, "link"))
        symlinkSync(join(bench.outside, "there"), join(bench.folder, "link-file"))
        symlinkSync(join(bench.outside, "not-there"), join(bench.folder, "broken"))
        symlinkSync("loop", join(bench.folder, "loop"))
        symlinkSync("file", join(bench.folder, "link-inside"))
        const before = [treeOf(bench.folder), treeOf(bench.outside)]
        // What is well-formed comes first: it must not be done either.
        const error = yield* bench.fail("apply_patch", { patch: patchOf("*** Add File: first", "+x", ...lines) })

        assert.match(error.message, message)
        assert.strictEqual(error.type, type)
        assert.strictEqual(bench.asked.length, 0)
        assert.deepStrictEqual([treeOf(bench.folder), treeOf(bench.outside)], before)
      })
  )

  const unfit: ReadonlyArray<readonly [what: string, content: string | Uint8Array, message: RegExp]> = [
    ["whose hunk does not fit", "other\n", /"u": hunk 1 \(line 5 of the patch\) does not fit/],
    ["that is no text", new Uint8Array([0x61, 0xff, 0, 0x0a]), /not text in UTF-8/],
    ["that is too large", "a\n".repeat(6 * 1024 * 1024), /at most 10485760 can be edited/],
    ["that would stay the same", "a\n", /change nothing: they add what they remove/]
  ]
  it.scoped.each(unfit)("TO-14: with an update of a file %s, no other file is changed", ([, content, message]) =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      put(bench, { u: content, d: "d" })
      const before = treeOf(bench.folder)
      const error = yield* bench.fail("apply_patch", {
        patch: patchOf("*** Add File: new/a", "+x", "*** Update File: u", "-a", "+a", "*** Delete File: d")
      })
      assert.strictEqual(error.type, "edit.refused")
      assert.match(error.message, message)
      assert.deepStrictEqual(treeOf(bench.folder), before)
    })
  )

  it.scoped("TO-74: CR LF, a byte order mark, a missing last line break and an empty file stay what they are", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      put(bench, { crlf: "a\r\nb\r\n", mark: "\uFEFFa\n", open: "a\nb", empty: "" })
      yield* bench.succeed("apply_patch", {
        patch: patchOf(
          "*** Update File: crlf",
          " a",
          "-b",
          "+c",
          "*** Update File: mark",
          "-a",
          "+b",
          "*** Update File: open",
          "-b",
          "+c",
          "*** Update File: empty",
          "+x",
          "*** Add File: nothing"
        )
      })
      const read = (name: string) => readFileSync(join(bench.folder, name), "utf8")
      assert.deepStrictEqual(["crlf", "mark", "open", "empty", "nothing"].map(read), [
        "a\r\nc\r\n",
        "\uFEFFb\n",
        "a\nc",
        "x\n",
        ""
      ])
    })
  )

  it.scoped("TO-76: an update through a link inside the Location keeps the link", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      put(bench, { "real/file": "a\n" })
      symlinkSync("real/file", join(bench.folder, "link"))
      const output = yield* bench.succeed("apply_patch", { patch: patchOf("*** Update File: link", "-a", "+b") })
      assert.deepStrictEqual(output.structured["files"], [{ path: "real/file", change: "update" }])
      assert.isTrue(lstatSync(join(bench.folder, "link")).isSymbolicLink())
      assert.strictEqual(readFileSync(join(bench.folder, "link"), "utf8"), "b\n")
    })
  )

  const meanwhile: ReadonlyArray<
    readonly [what: string, act: (bench: Bench) => void, lines: ReadonlyArray<string>, type: string]
  > = [
    [
      "a folder becomes a link",
      (bench) => symlinkSync(bench.outside, join(bench.folder, "n")),
      ["*** Add File: n/f", "+x"],
      "path.outside"
    ],
    [
      "a file becomes a link",
      (bench) => (unlinkSync(join(bench.folder, "u")), symlinkSync("d", join(bench.folder, "u"))),
      ["*** Update File: u", "-u"],
      "path.outside"
    ],
    ["a new file appears", (bench) => put(bench, { n: "mine" }), ["*** Add File: n", "+x"], "edit.refused"],
    [
      "a move's target appears",
      (bench) => put(bench, { n: "mine" }),
      ["*** Update File: u", "*** Move to: n"],
      "edit.refused"
    ],
    ["a file goes", (bench) => unlinkSync(join(bench.folder, "u")), ["*** Update File: u", "-u"], "file.missing"],
    ["a file to delete changes", (bench) => put(bench, { u: "more\n" }), ["*** Delete File: u"], "edit.refused"],
    [
      "a file to update changes so that no hunk fits",
      (bench) => put(bench, { u: "more\n" }),
      ["*** Update File: u", "-u"],
      "edit.refused"
    ]
  ]
  it.scoped.each(meanwhile)(
    "TO-111, TO-14: when %s while a person is asked, nothing is changed",
    ([, act, lines, type]) =>
      Effect.gen(function* () {
        let after: ReturnType<typeof treeOf> = {}
        const bench: Bench = yield* makeWorkbench({
          rules: [],
          answer: (): Effect.Effect<Answer> =>
            Effect.sync(() => {
              act(bench)
              after = treeOf(bench.folder)
              return Answer.Once()
            })
        })
        put(bench, { u: "u\n", d: "d\n" })
        const error = yield* bench.fail("apply_patch", { patch: patchOf("*** Update File: d", "-d", "+e", ...lines) })
        assert.strictEqual(error.type, type)
        assert.deepStrictEqual(treeOf(bench.folder), after)
        assert.deepStrictEqual(treeOf(bench.outside), {})
      })
  )

  it.scoped("TO-77: patches and edits of the same files at the same time all happen, one after the other", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      const names = Array.from({ length: 12 }, (_, index) => `<${index}>`)
      const content = `${names.join("\n")}\n`
      put(bench, { a: content, b: content })
      const update = (file: string, name: string) => [`*** Update File: ${file}`, `-${name}`, `+done ${name}`]
      yield* Effect.forEach(
        names,
        (name, index) =>
          bench.succeed("apply_patch", {
            patch: patchOf(...(index % 2 === 0 ? ["a", "b"] : ["b", "a"]).flatMap((file) => update(file, name)))
          }),
        { concurrency: "unbounded" }
      )
      const expected = `${names.map((name) => `done ${name}`).join("\n")}\n`
      assert.strictEqual(readFileSync(join(bench.folder, "a"), "utf8"), expected)
      assert.strictEqual(readFileSync(join(bench.folder, "b"), "utf8"), expected)
    })
  )

  it.scoped("TO-76: a file with a second name gets its new content under the name that was given only", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      put(bench, { a: "a\n" })
      linkSync(join(bench.folder, "a"), join(bench.outside, "a"))
      yield* bench.succeed("apply_patch", { patch: patchOf("*** Update File: a", "-a", "+b") })
      assert.strictEqual(readFileSync(join(bench.outside, "a"), "utf8"), "a\n")
      assert.strictEqual(readFileSync(join(bench.folder, "a"), "utf8"), "b\n")
    })
  )

  it.scoped("TO-14: whatever a patch is turned into, it applies as a whole or changes nothing", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      const whole = patchOf(
        "*** Add File: new/a.txt",
        "+one",
        "*** Update File: u.txt",
        "@@ b",
        " c",
        "-d",
        "+D",
        "*** End of File",
        "*** Update File: m.txt",
        "*** Move to: moved.txt",
        "@@",
        "-x",
        "+y",
        "*** Delete File: d.txt"
      )
      const files = { "u.txt": "a\nb\nc\nd\n", "m.txt": "w\nx\n", "d.txt": "d\n", "e.txt": "x\r\n" }
      const spot = fc.nat({ max: whole.length })
      const piece = fc.oneof(
        fc.constantFrom(
          "\n",
          "\r\n",
          "@@\n",
          "+",
          "-",
          " ",
          "../",
          "/",
          "\0",
          "\n*** End Patch\n",
          "*** Move to: e.txt\n"
        ),
        fc.string({ unit: "binary", maxLength: 4 })
      )
      const mutation = fc.oneof(
        fc.tuple(fc.constant("insert" as const), spot, piece),
        fc.tuple(fc.constant("cut" as const), spot, fc.nat({ max: 12 })),
        fc.tuple(fc.constant("repeat" as const), spot, fc.nat({ max: 60 }))
      )
      const lines = whole.split("\n")
      const shuffled = fc.shuffledSubarray(lines, { minLength: lines.length - 2 }).map((some) => some.join("\n"))
      const mutated = fc.array(mutation, { minLength: 1, maxLength: 3 }).map((mutations) =>
        mutations.reduce((patch, [kind, at, what]) => {
          if (kind === "insert") return patch.slice(0, at) + what + patch.slice(at)
          const end = at + what
          return patch.slice(0, kind === "cut" ? at : end) + patch.slice(kind === "cut" ? end : at)
        }, whole)
      )
      let applied = 0
      const attempt = Effect.fnUntraced(function* (patch: string) {
        rmSync(bench.folder, { recursive: true })
        mkdirSync(bench.folder)
        put(bench, files)
        const before = treeOf(bench.folder)
        const settled = yield* bench.settle("apply_patch", { patch })
        const after = treeOf(bench.folder)
        assert.deepStrictEqual(treeOf(bench.outside), {})
        if (settled._tag === "Failure") {
          assert.match(settled.error.type, /^(patch\.invalid|edit\.refused|file\.|path\.)/, settled.error.message)
          assert.deepStrictEqual(after, before, patch)
          return
        }
        applied++
        const changed = settled.output.structured["files"]
        assert(Array.isArray(changed))
        const touched = new Map<string, boolean>()
        for (const { change, movedTo, path } of changed) {
          touched.set(path, change === "add" || change === "update")
          if (movedTo !== undefined) touched.set(movedTo, true)
        }
        for (const [path, present] of touched) assert.strictEqual(after[path] !== undefined, present, patch)
        const rest = (tree: typeof after) =>
          Object.entries(tree).filter(([path, what]) => !touched.has(path) && what !== "folder")
        assert.deepStrictEqual(rest(after), rest(before), patch)
      })
      yield* attempt(whole)
      assert.strictEqual(applied, 1)
      const patches = fc.sample(fc.oneof({ weight: 4, arbitrary: mutated }, { weight: 1, arbitrary: shuffled }), 400)
      yield* Effect.forEach(patches, attempt, { discard: true })
    })
  )
})
