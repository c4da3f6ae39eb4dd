import { execFileSync } from "node:child_process"
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { searchLines } from "../../packages/tools/src/LineSearch.ts"
import { allowAll, makeWorkbench, temporaryFolder, textOf } from "./Workbench.ts"

const put = (folder: string, files: Readonly<Record<string, string | Uint8Array>>) =>
  Effect.sync(() => {
    for (const [name, content] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, name)), { recursive: true })
      writeFileSync(join(folder, name), content)
    }
  })

describe("glob", () => {
  it.scoped("TO-41: names come sorted, without what .gitignore names at any depth, .git and linked folders", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      yield* put(bench.folder, {
        ".gitignore": "build/\n*.log\n!kept.log\n",
        ".git/config.ts": "",
        "src/b.ts": "",
        "src/a.ts": "",
        "src/.hidden.ts": "",
        "src/deep/.gitignore": "private.ts\n",
        "src/deep/private.ts": "",
        "src/deep/c.ts": "",
        "build/out.ts": "",
        "node_modules/x/index.ts": "",
        "a b\nc.ts": ""
      })
      yield* put(bench.outside, { "secret.ts": "" })
      symlinkSync(bench.outside, join(bench.folder, "linked"))
      const output = yield* bench.succeed("glob", { pattern: "**/*.ts" })
      assert.deepStrictEqual(textOf(output).split("\n"), [
        String.raw`"a b\nc.ts"`,
        "src/.hidden.ts",
        "src/a.ts",
        "src/b.ts",
        "src/deep/c.ts"
      ])
      const all = yield* bench.succeed("glob", { pattern: "**/*.ts", path: "build", includeIgnored: true })
      assert.strictEqual(textOf(all), "build/out.ts")
    })
  )

  it.scoped("TO-42: more files than are shown is said", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      yield* put(bench.folder, Object.fromEntries(Array.from({ length: 1_001 }, (_, index) => [`f${index}`, ""])))
      const output = yield* bench.succeed("glob", { pattern: "*" })
      assert.deepStrictEqual(output.structured, { path: ".", count: 1_000, more: true })
      assert.include(textOf(output), "There are more")
      assert.include(textOf(yield* bench.succeed("glob", { pattern: "none*" })), "No file matches")
    })
  )

  const refused: ReadonlyArray<readonly [what: string, pattern: string]> = [
    ["a glob that leads upwards", "../**"],
    ["one that does so in a brace", "{a,../b}/*"],
    ["one that does so later on", "a/../../b/*"],
    ["one that only excludes", "!a"],
    ["one with many wildcards", "*a".repeat(21)],
    ["one that is very long", "a".repeat(1_001)]
  ]
  it.scoped.each(refused)("TO-43: %s is refused", ([, pattern]) =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench({ rules: [] })
      assert.strictEqual((yield* bench.fail("glob", { pattern })).type, "tool.input")
      assert.strictEqual((yield* bench.fail("grep", { pattern: "x", include: pattern })).type, "tool.input")
      assert.strictEqual(bench.asked.length, 0)
    })
  )

  it.scoped("TO-43: a folder outside is refused, and permission is needed for the one inside", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench({ rules: [{ permission: "glob", resource: "open", verdict: "allow" }] })
      yield* put(bench.folder, { "open/a": "", "closed/a": "" })
      assert.strictEqual((yield* bench.fail("glob", { pattern: "*", path: "../outside" })).type, "path.outside")
      assert.strictEqual((yield* bench.fail("glob", { pattern: "*", path: "closed" })).type, "permission.denied")
      assert.strictEqual(textOf(yield* bench.succeed("glob", { pattern: "*", path: "open" })), "open/a")
    })
  )
})

describe("grep", () => {
  it.scoped("TO-44: matching lines come with file and number, in order; binary files are passed over", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      yield* put(bench.folder, {
        "b.txt": "nothing\nneedle 1\r\nNeedle 2",
        "a.txt": "a needle\n",
        bin: Buffer.from("needle\0needle\n"),
        ".gitignore": "ignored.txt\n",
        "ignored.txt": "needle\n"
      })
      const output = yield* bench.succeed("grep", { pattern: "needle" })
      assert.strictEqual(textOf(output), "a.txt:1: a needle\nb.txt:2: needle 1")
      const any = yield* bench.succeed("grep", { pattern: "^needle \\d$", ignoreCase: true, include: "*.txt" })
      assert.strictEqual(textOf(any), "b.txt:2: needle 1\nb.txt:3: Needle 2")
      const one = yield* bench.succeed("grep", { pattern: "needle", path: "a.txt" })
      assert.strictEqual(textOf(one), "a.txt:1: a needle")
    })
  )

  it.scoped("TO-44: an include without a slash holds for the names of files in every folder", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      yield* put(bench.folder, { "a.ts": "x", "src/b.ts": "x", "src/deep/c.tsx": "x", "src/d.md": "x" })
      const listed = (include: string) =>
        Effect.map(bench.succeed("grep", { pattern: "x", include }), (output) => textOf(output))
      assert.strictEqual(yield* listed("*.ts"), "a.ts:1: x\nsrc/b.ts:1: x")
      assert.strictEqual(yield* listed("*.{ts,tsx}"), "a.ts:1: x\nsrc/b.ts:1: x\nsrc/deep/c.tsx:1: x")
      assert.strictEqual(yield* listed("d.md"), "src/d.md:1: x")
      assert.strictEqual(yield* listed("./*.ts"), "a.ts:1: x")
      assert.strictEqual(yield* listed("src/*.ts"), "src/b.ts:1: x")
    })
  )

  it.scoped("TO-44: a match in a very long line is shown with its surroundings only", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      yield* put(bench.folder, { "min.js": `${"x".repeat(1_000_000)}needle${"y".repeat(1_000_000)}` })
      const text = textOf(yield* bench.succeed("grep", { pattern: "needle" }))
      assert.include(text, "xneedley")
      assert.isBelow(text.length, 500)
    })
  )

  it.scoped("TO-45: more matches than are shown is said", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      yield* put(bench.folder, { a: "x\n".repeat(501), b: "x\n" })
      const output = yield* bench.succeed("grep", { pattern: "x" })
      assert.strictEqual(output.structured["count"], 500)
      assert.isTrue(output.structured["more"])
      assert.include(textOf(output), "more matches")
      yield* put(bench.folder, { a: "x\n".repeat(499) })
      const all = yield* bench.succeed("grep", { pattern: "x" })
      assert.strictEqual(all.structured["count"], 500)
      assert.isFalse(all.structured["more"])
    })
  )

  it.scoped("TO-45: files that cannot be searched are counted, not passed over in silence", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench({
        rules: [...allowAll, { permission: "read", resource: "*.key", verdict: "deny" }]
      })
      yield* put(bench.folder, { "large.txt": Buffer.alloc(10 * 1024 * 1024 + 1, "x\n"), "my.key": "x SECRET\n" })
      const text = textOf(yield* bench.succeed("grep", { pattern: "x" }))
      assert.include(text, "1 file too large")
      assert.include(text, "1 file left out")
      assert.notInclude(text, "SECRET")
      assert.include(text, "No line matches in 0 text files")
    })
  )

  it.scoped("TO-46: an expression that would take for ever is stopped, what was found before is kept", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      yield* put(folder, { a: "aaa!\n", b: `${"a".repeat(64)}!\n`, c: "aaa!\n" })
      const result = yield* searchLines({
        folder,
        files: ["a", "b", "c"],
        pattern: { source: "^(a|aa)+$|^aaa!$", flags: "", multiline: false },
        millis: 1_500
      })
      assert.deepStrictEqual(result.matches, [{ file: "a", line: 1, text: "aaa!" }])
      assert.strictEqual(result.stoppedIn, "b")
      assert.isTrue(result.more)
    })
  )

  const dialects: ReadonlyArray<readonly [pattern: string, found: ReadonlyArray<number>]> = [
    ["\\p{L}+\\p{Nd}", [1, 2]],
    ["\\pL\\d", [1, 2]],
    ["\\p{Cyrillic}", [2]],
    ["^\\P{ASCII}", [2]],
    ["[[:alpha:]]+[[:digit:]]", [1]],
    ["^[[:space:]]+$", [4]],
    ["[^[:alnum:][:space:]]", [2, 3, 5, 6]],
    ["(?i)HELLO", [3]],
    ["(?P<word>hel+o)", [3]],
    ["\\Ahello", [3]],
    ["\\<world\\>", [3]],
    ["function\\(\\) {", [5]],
    ["[\\w-]+\\.com", [6]],
    ["a\\-b\\@c", [6]],
    ["\\x{68}ello", [3]],
    ["{\\n}", [5]],
    ["(?s)hello.*function", [3]]
  ]
  it.scoped.each(dialects)("TO-544: %s means what it means to ripgrep", ([pattern, found]) =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      const text =
        "abc1\n\u043f\u0440\u0438\u0432\u0435\u04421\nhello, world\n \t\nfunction () => function() {\n}; a-b@c.com\n"
      yield* put(bench.folder, { a: text })
      const output = yield* bench.succeed("grep", { pattern })
      const numbers = [...textOf(output).matchAll(/^a:(\d+): /gm)].map(([, number]) => Number(number))
      assert.deepStrictEqual(numbers, [...found])
    })
  )

  it.scoped.each([
    ["(?x)a b", "the flag (?x)"],
    ["a(?i)b", "(?i) inside the expression"],
    ["(?>a)", "an atomic group"],
    ["a++", "the possessive repetition ++"],
    ["[a&&b]", "the set operation &&"],
    ["[[:^alpha:]]", "the negated class [:^alpha:] (write [^[:alpha:]])"],
    ["[[:letter:]]", "the class [:letter:]"],
    ["\\p{Nonsense}", "the Unicode property \\p{Nonsense}"],
    ["\\Gx", "the escape \\G"]
  ] as const)("TO-544: %s is refused with what it uses", ([pattern, what]) =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      const error = yield* bench.fail("grep", { pattern })
      assert.strictEqual(error.type, "tool.input")
      assert.include(error.message, `"pattern" uses ${what}`)
      assert.include(error.message, "which grep does not support")
    })
  )

  it.scoped("TO-544: a match across lines is shown with its lines, at its first one", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      yield* put(bench.folder, { a: "one\r\ntwo {\r\n  three\r\n}\r\ntwo {\r\n  four\r\n}\r\n" })
      const output = yield* bench.succeed("grep", { pattern: "two \\{\\n\\s+\\w+\\n\\}" })
      assert.strictEqual(textOf(output), "a:2: two {\n  three\n}\na:5: two {\n  four\n}")
    })
  )

  it.scoped("TO-540: files in UTF-16 and Latin-1 are searched", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      writeFileSync(join(bench.folder, "a"), Buffer.from("\uFEFFna\u00efve\n", "utf16le"))
      writeFileSync(join(bench.folder, "b"), Buffer.from("\uFEFFna\u00efve\n", "utf16le").swap16())
      writeFileSync(join(bench.folder, "c"), Buffer.from("na\u00efve\n", "latin1"))
      const output = yield* bench.succeed("grep", { pattern: "^na\u00efve$" })
      assert.strictEqual(textOf(output), "a:1: na\u00efve\nb:1: na\u00efve\nc:1: na\u00efve")
    })
  )

  it.scoped("TO-46: what is no regular expression is a tool.input failure", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      const error = yield* bench.fail("grep", { pattern: "(" })
      assert.strictEqual(error.type, "tool.input")
      assert.include(error.message, "Unterminated group")
    })
  )

  it.scoped("TO-46: links and pipes in the folder are neither followed nor waited for", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      yield* put(bench.outside, { secret: "needle SECRET\n" })
      yield* put(bench.folder, { a: "needle\n" })
      symlinkSync(join(bench.outside, "secret"), join(bench.folder, "link"))
      execFileSync("mkfifo", [join(bench.folder, "pipe")])
      const listed = yield* bench.succeed("grep", { pattern: "needle" })
      assert.strictEqual(textOf(listed), "a:1: needle")
      const result = yield* searchLines({
        folder: bench.folder,
        files: ["link", "pipe", "a"],
        pattern: { source: "needle", flags: "", multiline: false }
      })
      assert.deepStrictEqual(result.matches, [{ file: "a", line: 1, text: "needle" }])
      assert.strictEqual(result.unreadable, 2)
    })
  )
})
