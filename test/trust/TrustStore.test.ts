/** The decisions of a person about projects: real folders, real files, and what is kept of them. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Struct } from "effect"
import {
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import { limits } from "../../packages/core/src/trust/Brought.ts"
import { covers, make, type TrustOptions } from "../../packages/core/src/trust/TrustStore.ts"
import { folder, put } from "../context/support/Look.ts"
import { lacks } from "../support/Parts.ts"

/** A project, and a store beside it. */
const setup = Effect.fnUntraced(function* (options: Partial<TrustOptions> = {}) {
  const base = yield* folder
  const project = join(base, "project")
  mkdirSync(project)
  const kept = join(base, "data", "trust")
  const store = make({ folder: kept, ...options })
  const state = Effect.map(store.of(project), (standing) => standing.state)
  const grant = Effect.flatMap(store.report(project), (report) => store.decide(report, "trusted"))
  const asked = Effect.map(store.report(project), ({ standing }) => standing.state)
  return { base, project, kept, store, state, grant, asked }
})

const config = (git: string, text: string) => {
  mkdirSync(git)
  writeFileSync(join(git, "config"), text)
}

const rule = (project: string, text = "A rule.") => put(join(project, "AGENTS.md"), text)

describe("what needs a decision", () => {
  it.scoped("TR-7: a folder of the user's own that brings nothing is trusted without one", () =>
    Effect.gen(function* () {
      const { kept, project, state, store } = yield* setup()
      writeFileSync(join(project, "package.json"), "{}")
      mkdirSync(join(project, ".git"))
      writeFileSync(join(project, ".git", "config"), "[core]\n\tbare = false\n")
      mkdirSync(join(project, ".daybook"))
      assert.strictEqual(yield* state, "trusted")
      const { brings, standing } = yield* store.report(project)
      assert.deepStrictEqual([brings, standing.state, standing.decided], [[], "trusted", false])
      assert.throws(() => readdirSync(kept))
    })
  )

  it.scoped.each([
    ["AGENTS.md", "AGENTS.md"],
    ["CLAUDE.md", "CLAUDE.md"],
    ["an agent", ".daybook/agents/a.md"],
    ["a template", ".daybook/templates/t.md"],
    ["a skill", ".daybook/skills/s/SKILL.md"],
    ["anything else in .daybook", ".daybook/notes"],
    ["a remote", ".git/config"]
  ])("TR-5: %s makes a project unknown", ([, file]) =>
    Effect.gen(function* () {
      const { asked, project, state } = yield* setup()
      yield* put(join(project, file ?? ""), '[remote "origin"]\n\turl = https://example.com/a.git\n')
      assert.strictEqual(yield* state, "unknown")
      assert.strictEqual(yield* asked, "unknown")
    })
  )

  it.scoped.each([
    ["a link to a repository elsewhere", (git: string) => symlinkSync("../elsewhere", git)],
    [
      "a link as its configuration",
      (git: string) => (mkdirSync(git), symlinkSync("../../elsewhere/config", join(git, "config")))
    ],
    [
      "a remote in the line of its section",
      (git: string) => config(git, '[remote "origin"] url = https://example.com/a')
    ],
    ["a configuration that includes another", (git: string) => config(git, "[include]\n\tpath = more\n")],
    ["a remote behind 64 KiB", (git: string) => config(git, `#${"x".repeat(70_000)}\n[remote "o"]\nurl = x\n`)]
  ] as const)("TR-5: a project whose .git has %s may be a clone", ([, make]) =>
    Effect.gen(function* () {
      const { asked, base, project, state } = yield* setup()
      yield* put(join(base, "elsewhere", "config"), '[remote "origin"]\n\turl = https://example.com/a.git\n')
      make(join(project, ".git"))
      assert.strictEqual(yield* state, "unknown")
      assert.strictEqual(yield* asked, "unknown")
    })
  )

  it.scoped("TR-5: a repository without remotes is no clone", () =>
    Effect.gen(function* () {
      const { project, state } = yield* setup()
      config(join(project, ".git"), "[core]\n\tbare = false\n# url = x\n")
      assert.strictEqual(yield* state, "trusted")
    })
  )

  it.scoped("TR-5: instructions in a folder below are asked about, and do not count before", () =>
    Effect.gen(function* () {
      const { asked, grant, project, store } = yield* setup()
      yield* put(join(project, "deep", "down", "AGENTS.md"), "A rule.")
      yield* put(join(project, "node_modules", "a", "AGENTS.md"), "A stranger's rule.")
      assert.strictEqual(yield* asked, "unknown")
      assert.isFalse((yield* store.of(project)).approved?.has("deep/down/AGENTS.md"))
      yield* grant
      assert.deepStrictEqual([...((yield* store.of(project)).approved ?? [])], ["deep/down/AGENTS.md"])
      assert.strictEqual(yield* asked, "trusted")
    })
  )

  it.scoped("TR-8: folders that the configuration names need none, with all that is in them", () =>
    Effect.gen(function* () {
      const { base, project } = yield* setup()
      yield* rule(project)
      const under = (pattern: string) =>
        Effect.map(make({ folder: join(base, "data"), folders: [pattern] }).of(project), ({ state }) => state)
      assert.strictEqual(yield* under(join(base, "**")), "trusted")
      assert.strictEqual(yield* under(project), "trusted")
      assert.strictEqual(yield* under(join(base, "pro*")), "trusted")
      assert.strictEqual(yield* under(base), "unknown")
      assert.strictEqual(yield* under(`${base}-other/**`), "unknown")
    })
  )

  it.each([
    ["/a/**", "/a", true],
    ["/a/**", "/a/b/c", true],
    ["/a/**", "/ab", false],
    ["/a/*", "/a/b", true],
    ["/a/*", "/a/b/c", false],
    ["/a/*/c/**", "/a/b/c/d", true],
    ["/a/", "/a", true],
    ["/a", "/a/b", false],
    ["/**", "/a", true]
  ])("TR-8: %s and %s", (pattern, path, expected) => {
    assert.strictEqual(covers(pattern, path), expected)
  })
})

describe("a decision", () => {
  it.scoped("TR-9: holds in every process, and is kept for the user alone", () =>
    Effect.gen(function* () {
      const { grant, kept, project, state } = yield* setup()
      yield* rule(project)
      yield* grant
      assert.strictEqual(yield* state, "trusted")
      assert.strictEqual((yield* make({ folder: kept }).of(project)).state, "trusted")
      assert.strictEqual(statSync(kept).mode & 0o777, 0o700)
      const [file = ""] = readdirSync(kept)
      assert.strictEqual(statSync(join(kept, file)).mode & 0o777, 0o600)
      assert.strictEqual(readdirSync(kept).length, 1)
    })
  )

  it.scoped("TR-9: of a folder that was there already, others lose their access", () =>
    Effect.gen(function* () {
      const { grant, kept } = yield* setup()
      mkdirSync(kept, { recursive: true })
      chmodSync(kept, 0o777)
      yield* grant
      assert.strictEqual(statSync(kept).mode & 0o777, 0o700)
    })
  )

  const changes: ReadonlyArray<readonly [string, (project: string) => void]> = [
    ["a changed text", (at) => writeFileSync(join(at, "AGENTS.md"), "Another rule.")],
    ["a text of the same length", (at) => writeFileSync(join(at, "AGENTS.md"), "B rule.")],
    ["a file that went", (at) => rmSync(join(at, "AGENTS.md"))],
    ["a second name", (at) => writeFileSync(join(at, "CLAUDE.md"), "More.")],
    [
      "a new agent",
      (at) => {
        mkdirSync(join(at, ".daybook", "agents"), { recursive: true })
        writeFileSync(join(at, ".daybook", "agents", "a.md"), "You.")
      }
    ],
    ["a file below that changed", (at) => writeFileSync(join(at, "below", "AGENTS.md"), "Changed below.")],
    ["a skill's program", (at) => writeFileSync(join(at, ".daybook", "skills", "s", "run.sh"), "rm -rf /")],
    [
      "a link in place of a file",
      (at) => {
        writeFileSync(join(at, "same"), "A rule.")
        rmSync(join(at, "AGENTS.md"))
        symlinkSync("same", join(at, "AGENTS.md"))
      }
    ],
    ["another remote", (at) => writeFileSync(join(at, ".git", "config"), "[remote]\nurl = https://evil.example\n")],
    ["a file behind a linked folder", (at) => writeFileSync(join(at, "lib", "SKILL.md"), "Changed.")]
  ]
  for (const [what, change] of changes) {
    it.scoped(`TR-10, TR-11: ${what} asks again`, () =>
      Effect.gen(function* () {
        const { asked, grant, project, state } = yield* setup()
        yield* rule(project)
        yield* put(join(project, "below", "AGENTS.md"), "Below.")
        yield* put(join(project, ".daybook", "skills", "s", "SKILL.md"), "---\ndescription: s\n---\nBody")
        yield* put(join(project, ".daybook", "skills", "s", "run.sh"), "true")
        yield* put(join(project, ".git", "config"), "[remote]\nurl = https://example.com\n")
        yield* put(join(project, "lib", "SKILL.md"), "Body")
        symlinkSync("../../lib", join(project, ".daybook", "skills", "linked"))
        yield* grant
        assert.strictEqual(yield* asked, "trusted")
        change(project)
        assert.strictEqual(yield* state, "unknown")
        assert.strictEqual(yield* asked, "unknown")
      })
    )
  }

  it.scoped("TR-11: what is added below asks again, and does not count meanwhile", () =>
    Effect.gen(function* () {
      const { asked, grant, project, store } = yield* setup()
      yield* rule(project)
      yield* grant
      yield* put(join(project, "new", "AGENTS.md"), "Obey.")
      assert.isFalse((yield* store.of(project)).approved?.has("new/AGENTS.md"))
      assert.strictEqual(yield* asked, "unknown")
    })
  )

  it.scoped("TR-11: the report has what was added, removed and changed, with the texts of before and now", () =>
    Effect.gen(function* () {
      const { grant, project, store } = yield* setup()
      yield* rule(project)
      yield* put(join(project, ".daybook", "agents", "old.md"), "Old.")
      yield* grant
      yield* rule(project, "Another rule.")
      rmSync(join(project, ".daybook", "agents", "old.md"))
      yield* put(join(project, ".daybook", "agents", "new.md"), "New.")
      const { changes } = yield* store.report(project)
      assert.deepStrictEqual(
        changes?.added.map(({ path, text }) => [path, text]),
        [[".daybook/agents/new.md", "New."]]
      )
      assert.deepStrictEqual(changes?.removed.map(Struct.get("path")), [".daybook/agents/old.md"])
      assert.deepStrictEqual(
        changes?.changed.map(({ before, now }) => [now.path, before.text, now.text]),
        [["AGENTS.md", "A rule.", "Another rule."]]
      )
    })
  )

  it.scoped("TR-12: not to trust it holds until what it brings changes", () =>
    Effect.gen(function* () {
      const { asked, project, state, store } = yield* setup()
      yield* rule(project)
      yield* store.decide(yield* store.report(project), "restricted")
      assert.deepStrictEqual([yield* state, yield* asked], ["restricted", "restricted"])
      yield* rule(project, "Another rule.")
      assert.deepStrictEqual([yield* state, yield* asked], ["unknown", "unknown"])
    })
  )

  it.scoped("TR-10: another folder at the same place is not the one that was trusted", () =>
    Effect.gen(function* () {
      const { base, grant, project, state } = yield* setup()
      yield* rule(project)
      yield* grant
      renameSync(project, join(base, "moved"))
      mkdirSync(project)
      yield* rule(project)
      assert.strictEqual(yield* state, "unknown")
      rmSync(project, { recursive: true })
      renameSync(join(base, "moved"), project)
      assert.strictEqual(yield* state, "trusted")
    })
  )

  it.scoped("TR-10: the same folder at another place is asked about again", () =>
    Effect.gen(function* () {
      const { base, grant, project, store } = yield* setup()
      yield* rule(project)
      yield* grant
      renameSync(project, join(base, "moved"))
      assert.strictEqual((yield* store.of(join(base, "moved"))).state, "unknown")
    })
  )

  it.scoped.each([
    ["no JSON", "{"],
    ["another form", '{"version":2}'],
    ["nothing", ""]
  ])("TR-9: a file with %s decides nothing", ([, text]) =>
    Effect.gen(function* () {
      const { grant, kept, project, state } = yield* setup()
      yield* rule(project)
      yield* grant
      const [file = ""] = readdirSync(kept)
      writeFileSync(join(kept, file), text ?? "")
      assert.strictEqual(yield* state, "unknown")
    })
  )

  it.scoped("TR-9: a decision that was copied from another folder's file decides nothing", () =>
    Effect.gen(function* () {
      const { base, grant, kept, project, store } = yield* setup()
      yield* rule(project)
      yield* grant
      const other = join(base, "other")
      mkdirSync(other)
      yield* rule(other)
      yield* store.decide(yield* store.report(other), "restricted")
      const [first = "", second = ""] = readdirSync(kept)
      const texts = [first, second].map((name) => readFileSync(join(kept, name), "utf8"))
      writeFileSync(join(kept, first), texts[1] ?? "")
      writeFileSync(join(kept, second), texts[0] ?? "")
      assert.strictEqual((yield* store.of(other)).state, "unknown")
    })
  )

  it("TR-6: the bounds are those of the clause", () => {
    const { depth, entries, folders, hashed, things } = limits
    assert.deepStrictEqual([folders, entries, depth, things, hashed], [1_000, 20_000, 16, 500, 1_048_576])
  })

  it.scoped("TR-6: a .daybook beyond the bounds can be neither trusted nor changed unseen", () =>
    Effect.gen(function* () {
      const { grant, project, store } = yield* setup()
      mkdirSync(join(project, ".daybook", "agents"), { recursive: true })
      for (let n = 0; n <= limits.things; n++) writeFileSync(join(project, ".daybook", "agents", `${n}.md`), "")
      yield* grant
      const { state, why } = yield* store.of(project)
      assert.strictEqual(state, "restricted")
      assert.include(why, "exceeds the limits")
    })
  )

  it.scoped("TR-6: links in circles, pipes and deep folders end the look", () =>
    Effect.gen(function* () {
      const { project, state, store } = yield* setup()
      mkdirSync(join(project, ".daybook", "skills"), { recursive: true })
      symlinkSync("..", join(project, ".daybook", "skills", "round"))
      symlinkSync("/dev/zero", join(project, "AGENTS.md"))
      mkdirSync(join(project, ...Array.from({ length: 60 }, () => "d")), { recursive: true })
      assert.notStrictEqual(yield* state, "trusted")
      assert.notStrictEqual((yield* store.report(project)).standing.state, "trusted")
    })
  )

  it.scoped.skipIf(lacks("root"))(
    "TR-2, TR-10: a folder of another user is restricted; a decision about it ends with its owner",
    () =>
      Effect.gen(function* () {
        const { asked, grant, project, state } = yield* setup()
        chownSync(project, 65_533, 65_533)
        assert.deepStrictEqual([yield* state, yield* asked], ["restricted", "restricted"])
        const patterns = make({ folder: join(project, "..", "data"), folders: [join(project, "..", "**")] })
        assert.strictEqual((yield* patterns.of(project)).state, "restricted")
        yield* grant
        assert.strictEqual(yield* state, "trusted")
        chownSync(project, 65_532, 65_532)
        assert.strictEqual(yield* state, "restricted")
      })
  )

  it.scoped(
    "TR-7: a folder of the user's own that everybody may write to is asked about, though it brings nothing",
    () =>
      Effect.gen(function* () {
        const { grant, project, state } = yield* setup()
        chmodSync(project, 0o777)
        assert.strictEqual(yield* state, "unknown")
        yield* grant
        assert.strictEqual(yield* state, "trusted")
        yield* rule(project)
        assert.strictEqual(yield* state, "unknown")
      })
  )
})
