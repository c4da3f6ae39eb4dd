/** What the model reads of results, to the letter: every count, on both sides of every limit. */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Tool } from "@effect/ai"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema, Struct } from "effect"
import { define } from "../../packages/core/src/tool/ToolDefinition.ts"
import { pageLimits } from "../../packages/core/src/workspace/TextPage.ts"
import { layerNothing } from "../../packages/core/src/workspace/ToolOutputStore.ts"
import { makeOutputWindow, pathsOutside, windowLimits } from "../../packages/tools/src/Bash.ts"
import { patchOf } from "./PatchTree.ts"
import { allowAll, makeWorkbench, type Options, textOf } from "./Workbench.ts"

const lines = (count: number, from = 1) =>
  Array.from({ length: count }, (_, index) => `line ${from + index}\n`).join("")

const makeDesk = Effect.fnUntraced(function* (files: Readonly<Record<string, string>>, options?: Options) {
  const bench = yield* makeWorkbench(options)
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(join(bench.folder, name, ".."), { recursive: true })
    writeFileSync(join(bench.folder, name), content)
  }
  const said = (tool: string, input: unknown) => Effect.map(bench.succeed(tool, input), textOf)
  return { ...bench, said }
})

describe("changes", () => {
  it.scoped("TO-51: a written file is named with its bytes, as created or replaced", () =>
    Effect.gen(function* () {
      const { said } = yield* makeDesk({})
      assert.strictEqual(yield* said("write", { path: "a", content: "\u20ac" }), "Created a: 3 bytes.")
      assert.strictEqual(yield* said("write", { path: "a", content: "" }), "Replaced a: 0 bytes.")
    })
  )

  it.scoped(
    "TO-54: a text that occurs exactly twice is refused with the count, and replaced twice with replaceAll",
    () =>
      Effect.gen(function* () {
        const { fail, said } = yield* makeDesk({ a: "one two one\n" })
        const edit = { path: "a", oldText: "one", newText: "1" }
        const refused = yield* fail("edit", edit)
        assert.strictEqual(refused.type, "edit.refused")
        assert.strictEqual(
          refused.message,
          `"oldText" occurs 2 times in "a"; give more of the text around it, or set "replaceAll"`
        )
        assert.strictEqual(yield* said("read", { path: "a" }), "one two one\n")
        assert.strictEqual(yield* said("edit", { ...edit, oldText: "one two" }), "Edited a: 1 replaced.")
        assert.strictEqual(yield* said("edit", { ...edit, oldText: "o", replaceAll: true }), "Edited a: 1 replaced.")
        assert.strictEqual(yield* said("write", { path: "a", content: "x x" }), "Replaced a: 3 bytes.")
        const all = { path: "a", oldText: "x", newText: "y", replaceAll: true }
        assert.strictEqual(yield* said("edit", all), "Edited a: 2 replaced.")
        assert.strictEqual(yield* said("read", { path: "a" }), "y y")
      })
  )

  it.scoped("TO-54: occurrences are counted from left to right and do not overlap", () =>
    Effect.gen(function* () {
      const { fail, said } = yield* makeDesk({ a: "aaa", b: "aaaa" })
      assert.strictEqual(yield* said("edit", { path: "a", oldText: "aa", newText: "b" }), "Edited a: 1 replaced.")
      assert.include((yield* fail("edit", { path: "b", oldText: "aa", newText: "b" })).message, "occurs 2 times")
    })
  )

  it.scoped("TO-14: a question names five files of a patch, and counts the others", () =>
    Effect.gen(function* () {
      const { asked, fail } = yield* makeDesk({}, { rules: [] })
      const adding = (count: number) =>
        patchOf(...Array.from({ length: count }, (_, n) => [`*** Add File: f${n}`, "+x"]).flat())
      for (const count of [5, 6, 8]) yield* fail("apply_patch", { patch: adding(count) })
      const five = "Patch A f0, A f1, A f2, A f3, A f4"
      assert.deepStrictEqual(asked.map(Struct.get("title")), [five, `${five} and 1 more`, `${five} and 3 more`])
    })
  )

  it.scoped("PM-6: a refusal names five resources, and counts the others", () =>
    Effect.gen(function* () {
      const { fail } = yield* makeDesk({}, { rules: [] })
      const adding = (count: number) =>
        patchOf(...Array.from({ length: count }, (_, n) => [`*** Add File: f${n}`, "+x"]).flat())
      const five = '"edit" on "f0", "f1", "f2", "f3", "f4"'
      const said = (count: number) =>
        Effect.map(fail("apply_patch", { patch: adding(count) }), ({ message }) => message)
      assert.isTrue((yield* said(5)).startsWith(`${five} needs a person's approval`))
      assert.isTrue((yield* said(7)).startsWith(`${five} and 2 more needs a person's approval`))
    })
  )
})

describe("pages", () => {
  it.scoped("TO-34: a page has as many lines as fit, and says which they are and where to go on", () =>
    Effect.gen(function* () {
      const { said } = yield* makeDesk({ fits: lines(pageLimits.lines), more: lines(pageLimits.lines + 1) })
      assert.strictEqual(yield* said("read", { path: "fits" }), lines(1_900))
      assert.strictEqual(
        yield* said("read", { path: "more" }),
        `${lines(1_900)}\n[Lines 1 to 1900; there are more: continue with offset 1901.]`
      )
      assert.strictEqual(yield* said("read", { path: "more", offset: 1_901 }), "line 1901\n")
      assert.strictEqual(
        yield* said("read", { path: "more", offset: 3, limit: 2 }),
        "line 3\nline 4\n\n[Lines 3 to 4; there are more: continue with offset 5.]"
      )
    })
  )

  it.scoped("TO-34: a line of the limit is whole; of one byte more the rest is counted", () =>
    Effect.gen(function* () {
      const { lineBytes } = pageLimits
      const { said } = yield* makeDesk({
        fits: `${"x".repeat(lineBytes)}\n`,
        long: `${"x".repeat(lineBytes + 1)}\ny\n${"x".repeat(lineBytes + 300)}\n`
      })
      assert.strictEqual(yield* said("read", { path: "fits" }), `${"x".repeat(lineBytes)}\n`)
      const cut = "x".repeat(lineBytes)
      assert.strictEqual(
        yield* said("read", { path: "long" }),
        `${cut}[... 1 more bytes of this line]\ny\n${cut}[... 300 more bytes of this line]\n\n` +
          "[2 lines are longer than 4096 bytes and cut.]"
      )
    })
  )

  it.scoped("TO-34: a page has as many bytes as fit", () =>
    Effect.gen(function* () {
      const { bytes } = pageLimits
      const row = `${"x".repeat(1_023)}\n`
      const { said } = yield* makeDesk({ fits: row.repeat(48), more: `${row.repeat(48)}y` })
      assert.strictEqual(yield* said("read", { path: "fits" }), row.repeat(bytes / 1_024))
      assert.include(yield* said("read", { path: "more" }), "[Lines 1 to 48; there are more: continue with offset 49.]")
    })
  )

  it.scoped("TO-13: a folder's page says which entries it has, of how many", () =>
    Effect.gen(function* () {
      const { fail, said } = yield* makeDesk({ "d/a": "", "d/b": "", "d/c": "", "d/sub/x": "", "e/only": "" })
      assert.strictEqual(yield* said("read", { path: "d" }), "sub/\na\nb\nc\n")
      assert.strictEqual(
        yield* said("read", { path: "d", limit: 3 }),
        "sub/\na\nb\n\n[Entries 1 to 3 of 4: continue with offset 4.]"
      )
      assert.strictEqual(
        yield* said("read", { path: "d", offset: 2, limit: 1 }),
        "a\n\n[Entries 2 to 2 of 4: continue with offset 3.]"
      )
      assert.strictEqual(yield* said("read", { path: "d", offset: 4 }), "c\n")
      assert.strictEqual(
        (yield* fail("read", { path: "d", offset: 5 })).message,
        '"offset" is 5, but "d" has 4 entries'
      )
    })
  )
})

describe("searches", () => {
  it.scoped("TO-42: a thousand names are all; one more is said", () =>
    Effect.gen(function* () {
      const files = Object.fromEntries(
        Array.from({ length: 1_001 }, (_, n) => [`d/f${String(n).padStart(4, "0")}`, ""])
      )
      const { said, succeed } = yield* makeDesk({ ...files, "e/x": "" })
      const { structured } = yield* succeed("glob", { pattern: "d/f0*" })
      assert.deepStrictEqual(structured, { path: ".", count: 1_000, more: false })
      const more = yield* said("glob", { pattern: "d/*" })
      assert.isTrue(
        more.endsWith("d/f0999\n[There are more; these are 1000 of them. Narrow the pattern or the path.]"),
        more.slice(-200)
      )
      assert.strictEqual(yield* said("glob", { pattern: "*", path: "e" }), "e/x")
      assert.strictEqual(yield* said("glob", { pattern: "none" }), "[No file matches.]")
    })
  )

  it.scoped("TO-45: five hundred matches are all; one more is said, and the count is of those shown", () =>
    Effect.gen(function* () {
      const { said, succeed } = yield* makeDesk({ "d/a": "m\n".repeat(500), "e/a": "m\n".repeat(501), "e/b": "m\n" })
      const fits = yield* succeed("grep", { pattern: "m", path: "d" })
      assert.deepStrictEqual(fits.structured, { path: "d", count: 500, files: 1, more: false, notices: [] })
      assert.isTrue(textOf(fits).endsWith("\nd/a:500: m"))
      const more = yield* succeed("grep", { pattern: "m", path: "e" })
      const notice = "There may be more matches: narrow the pattern or the path."
      assert.deepStrictEqual(more.structured, { path: "e", count: 500, files: 1, more: true, notices: [notice] })
      assert.isTrue(textOf(more).endsWith(`\ne/a:500: m\n[${notice}]`))
      assert.strictEqual(yield* said("grep", { pattern: "none" }), "[No line matches in 3 text files.]")
      assert.strictEqual(yield* said("grep", { pattern: "none", path: "e/b" }), "[No line matches in 1 text file.]")
    })
  )

  it.scoped("TO-45: files that are too large, or denied, are counted in words, one and several", () =>
    Effect.gen(function* () {
      const limit = 10 * 1024 * 1024
      const { said } = yield* makeDesk(
        { "a/fits": "x".repeat(limit), "b/large": "x".repeat(limit + 1), "no/1": "m", "no/2": "m", "yes/a": "m" },
        { rules: [...allowAll, { permission: "read", resource: "no/*", verdict: "deny" }] }
      )
      assert.strictEqual(yield* said("grep", { pattern: "m", path: "a" }), "[No line matches in 1 text file.]")
      assert.strictEqual(
        yield* said("grep", { pattern: "m" }),
        "yes/a:1: m\n[1 file too large to search. 2 files left out: a rule denies reading.]"
      )
      assert.strictEqual(
        yield* said("grep", { pattern: "m", path: "no/1" }),
        "[1 file left out: a rule denies reading. No line matches in 0 text files.]"
      )
    })
  )

  it.scoped("TO-44: a line of 400 characters is whole; a longer one is shown from 80 before its match", () =>
    Effect.gen(function* () {
      const long = `${"a".repeat(100)}M${"b".repeat(400)}`
      const { said } = yield* makeDesk({
        fits: `${"a".repeat(399)}M`,
        long,
        edge: `${"a".repeat(80)}M${"b".repeat(320)}`
      })
      assert.strictEqual(yield* said("grep", { pattern: "M", path: "fits" }), `fits:1: ${"a".repeat(399)}M`)
      const shown = `...${"a".repeat(80)}M${"b".repeat(319)}...`
      assert.strictEqual(yield* said("grep", { pattern: "M", path: "long" }), `long:1: ${shown}`)
      const edge = `${"a".repeat(80)}M${"b".repeat(319)}...`
      assert.strictEqual(yield* said("grep", { pattern: "M", path: "edge" }), `edge:1: ${edge}`)
    })
  )
})

describe("outputs", () => {
  it.scopedLive("TO-61: how a command ended is one line after what it printed", () =>
    Effect.gen(function* () {
      const { said, succeed } = yield* makeDesk({})
      assert.strictEqual(yield* said("bash", { command: "printf '\\303\\244'; exit 1" }), "\u00e4\n[Exit code 1.]")
      assert.strictEqual(yield* said("bash", { command: "exit 7" }), "[No output. Exit code 7.]")
      assert.strictEqual(yield* said("bash", { command: "echo x; kill -TERM $$" }), "x\n\n[Ended by signal SIGTERM.]")
      const { structured } = yield* succeed("bash", { command: "printf '\\303\\244'; printf xyz >&2" })
      assert.deepStrictEqual(structured, { exitCode: 0, bytes: 5, warnings: [] })
    })
  )

  const numbered = (count: number) => {
    const window = makeOutputWindow()
    window.add("stdout", Buffer.from(lines(count)))
    return window
  }

  it("TO-64: what fits the window is whole; of one line more, both ends are shown and counted", () => {
    const { headLines, tailLines } = windowLimits
    const fits = numbered(headLines + tailLines)
    assert.strictEqual(fits.render("."), lines(1_900))
    assert.isFalse(fits.cut())
    const more = numbered(headLines + tailLines + 1)
    const [head, tail] = [lines(headLines), lines(tailLines, headLines + 2)]
    assert.strictEqual(
      more.render(" There."),
      `${head}[Cut: 1900 of 1901 lines, ${head.length + tail.length} of ${lines(1_901).length} bytes are shown, ` +
        `the rest is left out here. There.]\n${tail}`
    )
    assert.isTrue(more.cut())
  })

  it("TO-64: of few long lines, the bytes decide, and whole lines are shown at both ends", () => {
    const window = makeOutputWindow()
    const row = `${"x".repeat(1_023)}\n`
    for (let index = 0; index < 46; index++) window.add("stdout", Buffer.from(row))
    assert.strictEqual(window.render(""), row.repeat(46))
    const cut = makeOutputWindow()
    for (let index = 0; index < 50; index++) cut.add(index % 2 === 0 ? "stdout" : "stderr", Buffer.from(row))
    assert.strictEqual(
      cut.render(""),
      `${row.repeat(12)}[Cut: 46 of 50 lines, 47104 of 51200 bytes are shown, the rest is left out here.]\n${row.repeat(34)}`
    )
    assert.strictEqual(cut.bytes(), 51_200)
    assert.strictEqual(cut.latest(5), "xxxx\n")
  })

  it.scoped("TO-21, TO-26: a cut output says how much of it is shown", () =>
    Effect.gen(function* () {
      const { registry, said } = yield* makeDesk({}, { outputs: layerNothing })
      const saying = (text: string) =>
        define(Tool.make("say", { success: Schema.String }), { handler: () => Effect.succeed(text) })
      yield* registry.register([saying(lines(2_001))])
      const shown = lines(1_998)
      assert.strictEqual(
        yield* said("say", {}),
        `${shown}[Cut: this is the beginning, 1998 of 2001 lines, ${shown.length} of ${lines(2_001).length} bytes. ` +
          "The rest was not kept.]"
      )
    })
  )
})

describe("the advice in a question about a command", () => {
  it.each([
    ["cat src/bin/tool project/etc/passwd a/usr/bin/env", []],
    ["./bin/run ../etc/x node_modules/.bin/tsc $HOME/bin/x", []],
    ["sed -i s/etc/bin/ a && make -C bin/ etc/", []],
    ["PATH=./bin:a/etc/b:$PATH x", []],
    ["/bin/ls /usr/bin/env /usr/local/bin/node /", []],
    ["/opt/bin/x", ["/opt/bin/x"]],
    ["/home/me/usr/bin/x", ["/home/me/usr/bin/x"]],
    ["/usr/bin/sub/x", ["/usr/bin/sub/x"]],
    ["/bin/../etc/shadow", ["/bin/../etc/shadow"]],
    ["/usr/sbin/x /usr/lib/bin/y", ["/usr/sbin/x", "/usr/lib/bin/y"]],
    ["/dev/null /dev/fd/3 /dev/nullx /dev/sda", ["/dev/nullx", "/dev/sda"]],
    ["PATH=/opt/bin:$PATH x", ["/opt/bin"]]
  ] as const)("TO-12: in %j it names the absolute paths outside and no others", (command, expected) => {
    assert.deepStrictEqual(pathsOutside(command, "/work"), [...expected])
  })

  it("TO-118, TO-12: it names ten paths, each once", () => {
    const named = Array.from({ length: 12 }, (_, n) => `/p${n}`)
    assert.deepStrictEqual(pathsOutside(`x ${named.join(" ")}`, "/work"), named.slice(0, 10))
    assert.deepStrictEqual(pathsOutside("x /p /p /q", "/work"), ["/p", "/q"])
  })
})
