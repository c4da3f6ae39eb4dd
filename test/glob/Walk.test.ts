import { execFileSync } from "node:child_process"
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { compile } from "../../packages/core/src/glob/Glob.ts"
import { walk, type WalkOptions } from "../../packages/core/src/glob/Walk.ts"
import { maxIgnoreBytes, maxIgnoreRules } from "../../packages/core/src/support/Limits.ts"
import { foldersBetween } from "../../packages/core/src/trust/ProjectTrust.ts"
import { temporaryFolder } from "../tools/Workbench.ts"

const put = (folder: string, files: Readonly<Record<string, string>>) => {
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), content)
  }
}

const names = (...all: ReadonlyArray<string>) => Object.fromEntries(all.map((name) => [name, ""]))

/** The walk below `root`, a project, from one of its folders. */
const walked = (root: string, folder = "", options: Partial<WalkOptions> = {}) => {
  const from = join(root, folder)
  const glob = compile("**")
  if (glob === undefined) throw new Error("a glob without braces")
  const { signal } = new AbortController()
  const ignoring = foldersBetween(root, from)
  return Effect.promise(() =>
    walk({ folder: from, glob, signal, most: 1_000, skipped: new Set(), ignoring, ...options })
  )
}

const listed = (root: string, folder?: string) =>
  Effect.map(walked(root, folder), ({ files }) => files.filter((file) => !file.endsWith(".gitignore")).toSorted())

/** Rules of one file in the project's root, the files there are, and those that are left. */
const cases: ReadonlyArray<
  readonly [what: string, rules: string, all: ReadonlyArray<string>, left: ReadonlyArray<string>]
> = [
  ["a name holds in every folder", "a", ["a", "b/a", "b/c"], ["b/c"]],
  [
    "a slash at the beginning or in the middle ties a rule to its folder",
    "/a\nb/c",
    ["a", "x/a", "b/c", "x/b/c"],
    ["x/a", "x/b/c"]
  ],
  ["a slash at the end is for folders", "a/", ["a/b", "x/a"], ["x/a"]],
  ["two stars stand for any folders", "a/**/z\n**/q", ["a/z", "a/b/z", "z", "x/q"], ["z"]],
  ["two stars at the end are what is in the folder", "a/**", ["a/b", "a/c/d", "b/a"], ["b/a"]],
  [
    "the last rule that matches decides",
    "*.log\n!kept.log\n",
    ["a.log", "kept.log", "x/kept.log"],
    ["kept.log", "x/kept.log"]
  ],
  ["what is in an ignored folder is not taken back", "a/\n!a/b", ["a/b"], []],
  ["what is in a folder whose content is ignored is", "a/*\n!a/b", ["a/b", "a/c"], ["a/b"]],
  [
    "a backslash takes a sign as it is",
    String.raw`\#a` + "\n" + String.raw`\!b` + "\n" + String.raw`c\ ` + "\n" + String.raw`\*`,
    ["#a", "!b", "c ", "*", "d"],
    ["d"]
  ],
  [
    "comments, blanks, spaces at the end, CRLF and a byte order mark are none of a rule",
    "\uFEFFa  \r\n# b\r\n\r\n   \r\n!\r\n/\r\n",
    ["a", "b"],
    ["b"]
  ],
  ["a line of one space is blank", " ", [" ", "a"], [" ", "a"]],
  ["case counts", "Foo", ["foo", "Foo"], ["foo"]]
]

describe("rules of .gitignore", () => {
  for (const [what, rules, all, left] of cases) {
    it.scoped(`TO-41: ${what}`, () =>
      Effect.gen(function* () {
        const root = yield* temporaryFolder
        put(root, { ...names(...all), ".gitignore": rules })
        assert.deepStrictEqual(yield* listed(root), left)
      })
    )
  }

  it.scoped("TO-41: those of the folders above hold in a folder below, and the inner ones count more", () =>
    Effect.gen(function* () {
      const root = yield* temporaryFolder
      put(root, { ...names("a/b/x.log", "a/b/y.log", "a/b/z", "out/c"), ".gitignore": "*.log\nout/\nz\n" })
      put(root, { "a/b/.gitignore": "!y.log\n" })
      assert.deepStrictEqual(yield* listed(root, "a/b"), ["y.log"])
      assert.deepStrictEqual(yield* listed(root, "a"), ["b/y.log"])
      assert.deepStrictEqual(yield* listed(root, "out"), [])
    })
  )

  it.scoped("LM-21: rules that cost too much or are too many, and files that are no text of rules, are left out", () =>
    Effect.gen(function* () {
      const root = yield* temporaryFolder
      put(root, names("a", "b", "many/c", "large/d", "link/e", "pipe/f"))
      put(root, {
        ".gitignore": `${"*a".repeat(21)}\n${"x".repeat(1_001)}\nb\n`,
        "many/.gitignore": `${"x\n".repeat(maxIgnoreRules)}c\n`,
        "large/.gitignore": `d\n${"#".repeat(maxIgnoreBytes)}`,
        rules: "e"
      })
      symlinkSync(join(root, "rules"), join(root, "link/.gitignore"))
      execFileSync("mkfifo", [join(root, "pipe/.gitignore")])
      assert.deepStrictEqual(yield* listed(root), ["a", "large/d", "link/e", "many/c", "pipe/f", "rules"])
      const { warnings } = yield* walked(root)
      assert.lengthOf(warnings, 3)
      assert.include(warnings.join("\n"), `${join(root, ".gitignore")}: 2 of its rules are ignored`)
    })
  )
})

describe("a hostile project", () => {
  it.scoped("LM-20: sixteen stars and twenty long names cost nothing worth mentioning", () =>
    Effect.gen(function* () {
      const root = yield* temporaryFolder
      put(root, names(...Array.from({ length: 20 }, (_, at) => `${"a".repeat(230 + at)}b`)))
      const rules = ["*a".repeat(16), "*a*".repeat(10), "*?a".repeat(16), `**/${"*a".repeat(16)}`, "*[a]".repeat(16)]
      put(root, { ".gitignore": rules.map((rule) => `${rule}c`).join("\n") })
      assert.lengthOf(yield* listed(root), 20)
    })
  )

  it.scoped("LM-22: a walk that costs much lets others work, and ends when it is told to", () =>
    Effect.gen(function* () {
      const root = yield* temporaryFolder
      const hostile = `${"*".concat("?".repeat(200))}a${"*b".repeat(10)}`
      put(root, names(...Array.from({ length: 100 }, (_, at) => `${"a".repeat(200)}${at}/f`)))
      put(root, { ".gitignore": `${hostile}\n`.repeat(maxIgnoreRules) })
      const controller = new AbortController()
      // Comes only when the walk gives way: without that it would go on to its end.
      setTimeout(() => controller.abort(), 1)
      const { more } = yield* walked(root, "", { signal: controller.signal })
      assert.isTrue(more)
    })
  )

  it.scoped(
    "TO-41: links and pipes are not given, folders that cannot be read are empty, and the number is bounded",
    () =>
      Effect.gen(function* () {
        const root = yield* temporaryFolder
        put(root, names("a", "b", "c"))
        mkdirSync(join(root, "closed"), { mode: 0 })
        symlinkSync(join(root, "a"), join(root, "link"))
        symlinkSync(root, join(root, "loop"))
        execFileSync("mkfifo", [join(root, "pipe")])
        assert.deepStrictEqual(yield* listed(root), ["a", "b", "c"])
        const { files, more } = yield* walked(root, "", { most: 2 })
        assert.lengthOf(files, 2)
        assert.isTrue(more)
        assert.isFalse((yield* walked(root, "", { most: 3 })).more)
        assert.deepStrictEqual((yield* walked(root, "nowhere")).files, [])
      })
  )
})
