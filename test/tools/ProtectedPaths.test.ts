/** Files that programs obey, and files that hold secrets: a rule allows them only when it names them. */
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import type { Rule } from "../../packages/core/src/domain/Rule.ts"
import { Answer } from "../../packages/core/src/permission/PermissionAsker.ts"
import { PermissionStore } from "../../packages/core/src/permission/PermissionStore.ts"
import { guardsOf, namesGuards } from "../../packages/core/src/permission/ProtectedPaths.ts"
import { approvals, source } from "../support/Approvals.ts"
import { patchOf } from "./PatchTree.ts"
import { allowAll, makeWorkbench, type Options, textOf } from "./Workbench.ts"

const allow = (permission: string, resource: string): Rule => ({ permission, resource, verdict: "allow" })

/** A Location with a few files, each of which holds its own name. */
const makeDesk = Effect.fnUntraced(function* (files: ReadonlyArray<string>, options?: Options) {
  const bench = yield* makeWorkbench(options)
  const at = (name: string) => join(bench.folder, name)
  const put = (name: string) => {
    mkdirSync(dirname(at(name)), { recursive: true })
    writeFileSync(at(name), `${name}\n`)
  }
  files.forEach(put)
  const resources = () => bench.asked.map((request) => request.resources)
  return { ...bench, at, resources }
})

const obeyed = [
  ".git/config .git/hooks/pre-commit vendor/lib/.git/config .git sub/HEAD .gitmodules",
  ".gitattributes src/.gitattributes .npmrc packages/a/.npmrc .yarnrc.yml .daybook/agents/x.md",
  "AGENTS.md CLAUDE.md docs/AGENTS.md .claude/settings.json .mcp.json .husky/pre-commit",
  ".cargo/config.toml .mvn/extensions.xml .bundle/config bunfig.toml lefthook.toml mise.toml .dir-locals.el .zed/tasks.json",
  ".aider.conf.yml .kiro/x.md docs/QWEN.md GIT~1/config",
  ".vscode/tasks.json .idea/workspace.xml .envrc .bashrc .profile .zshenv .config/fish/config.fish"
].flatMap((line) => line.split(" "))
const secrets = [
  ".env .env.local .env.production apps/web/.env prod.env server.pem tls/private.key",
  "id_rsa id_ed25519 id_work id_rsa.old .netrc .aws/credentials .ssh/config .npmrc",
  ".docker/config.json .git-credentials release.p12 infra/terraform.tfstate .env.example.local"
].flatMap((line) => line.split(" "))
const ordinary = [
  "src/a.ts package.json Makefile .gitignore .github/workflows/ci.yml .env.example README.md",
  "src/environment.ts id_rsa.pub src/id_token.ts keys.ts public.pem.md docs/git/config agents.ts"
].flatMap((line) => line.split(" "))
/** The same name for some file system, or for programs that are not strict. */
const spellings = [
  ...".GIT/config .Git/hooks/x claude.MD agents.md .NPMRC .Husky/x .VSCODE/settings.json".split(" "),
  ...".g\u200cit/config .git./config \uFF0Egit/config .G\u0131T/config".split(" "),
  ".git /config"
]

describe("protected paths", () => {
  it.each(obeyed)("PP-1: an edit of %s asks under a rule that allows everything", (path) => {
    const guards = guardsOf("edit", path)
    assert.isAbove(guards.length, 0)
    for (const pattern of ["*", "**", ".*", "*/*", "?git/*", "*config", "*.md", ".git*/*"]) {
      assert.isFalse(namesGuards(pattern, path, guards), pattern)
    }
  })

  it.each(secrets)("PP-2: reading, searching and editing %s asks under a rule that allows everything", (path) => {
    for (const permission of ["read", "grep", "edit"]) {
      const guards = guardsOf(permission, path)
      assert.isAbove(guards.length, 0, permission)
      for (const pattern of ["*", "**", ".*", "*/*", "apps/*", "?env"]) {
        assert.isFalse(namesGuards(pattern, path, guards), pattern)
      }
    }
  })

  it.each(ordinary)("PP-7, PP-1: %s is not protected", (path) => {
    for (const permission of ["read", "grep", "edit"]) assert.deepStrictEqual(guardsOf(permission, path), [])
  })

  it.each(spellings)("PP-4: %j is protected as the name that a file system may take it for", (path) => {
    assert.isAbove(guardsOf("edit", path).length, 0)
  })

  it.each([
    [".git/config", ".git/*"],
    [".git/config", ".git/config"],
    [".git/config", "*/.git/config"],
    [".GIT/config", ".git/*"],
    ["a/.env", "*.env"],
    [".env.local", ".env*"],
    ["tls/a.pem", "tls/*.pem"],
    ["id_rsa", "id_*"],
    ["a*b/.env", "a\\*b/.env"]
  ])("PP-3: %s is allowed by a rule for %s", (path, pattern) => {
    assert.isTrue(namesGuards(pattern, path, guardsOf("edit", path)))
  })

  it.each([
    [".git/config", ".github/*"],
    [".git/.env", ".git/*"],
    [".daybook/.git/config", ".daybook/*"],
    [".git/config", ".g*t/config"],
    [".git/config", "\\.git*"],
    ["src/.npmrc", "src/*"],
    ["keys/a.pem", "keys/*"]
  ])("PP-3: %s is not allowed by a rule for %s, which does not name all that protects it", (path, pattern) => {
    assert.isFalse(namesGuards(pattern, path, guardsOf("edit", path)))
  })

  it.scoped("PP-1: write, edit and apply_patch ask for such a file, and change nothing when nobody answers", () =>
    Effect.gen(function* () {
      const { asked, at, fail, succeed } = yield* makeDesk([".git/config", "AGENTS.md", "src/a.ts"])
      const calls = [
        ["write", { path: ".git/config", content: "x" }],
        ["write", { path: ".git/hooks/post-checkout", content: "x" }],
        ["write", { path: "./src/../.git/./config", content: "x" }],
        ["write", { path: at(".git/config"), content: "x" }],
        ["write", { path: ".daybook/agents/evil.md", content: "x" }],
        ["edit", { path: "AGENTS.md", oldText: "AGENTS", newText: "x" }],
        ["apply_patch", { patch: patchOf("*** Add File: src/b.ts", "+x", "*** Add File: .npmrc", "+x") }],
        ["apply_patch", { patch: patchOf("*** Update File: src/a.ts", "*** Move to: .husky/pre-commit") }],
        ["apply_patch", { patch: patchOf("*** Delete File: .git/config") }]
      ] as const
      for (const [tool, input] of calls) assert.strictEqual((yield* fail(tool, input)).type, "permission.denied")
      assert.lengthOf(asked, calls.length)
      assert.strictEqual(readFileSync(at(".git/config"), "utf8"), ".git/config\n")
      // Of a patch, only what is protected is asked about.
      assert.deepStrictEqual(asked[6]?.resources, [".npmrc"])
      yield* succeed("write", { path: "src/a.ts", content: "free" })
      assert.lengthOf(asked, calls.length)
    })
  )

  it.scoped("PP-5: links on the way do not hide what is protected, from either side", () =>
    Effect.gen(function* () {
      const { at, fail, resources } = yield* makeDesk([".git/config", ".env", "conf/production", "conf/hooks/x"])
      symlinkSync(".git", at("tools"))
      symlinkSync(".env", at("notes.txt"))
      symlinkSync("conf/production", at(".env.local"))
      symlinkSync("conf/hooks", at(".husky"))
      const calls = [
        ["write", { path: "tools/config", content: "x" }, ".git/config"],
        ["write", { path: "tools/hooks/new", content: "x" }, ".git/hooks/new"],
        ["write", { path: ".husky/x", content: "x" }, "conf/hooks/x"],
        ["apply_patch", { patch: patchOf("*** Add File: .husky/y", "+x") }, "conf/hooks/y"],
        ["read", { path: "notes.txt" }, ".env"],
        ["read", { path: ".env.local" }, "conf/production"],
        ["grep", { pattern: "e", path: "notes.txt" }, ".env"],
        ["grep", { pattern: "e", path: ".env.local" }, "conf/production"]
      ] as const
      for (const [tool, input] of calls) assert.strictEqual((yield* fail(tool, input)).type, "permission.denied")
      assert.deepStrictEqual(
        resources(),
        calls.map(([, , resource]) => [resource])
      )
    })
  )

  it.scoped("PP-3: a later rule that names the file allows it, and one that denies still denies", () =>
    Effect.gen(function* () {
      const rules = [...allowAll, allow("edit", ".npmrc"), allow("read", "apps/*/.env*")]
      const denies: Rule = { permission: "read", resource: ".env", verdict: "deny" }
      const { asked, fail, succeed } = yield* makeDesk([".env", "apps/web/.env"], { rules: [...rules, denies] })
      yield* succeed("write", { path: ".npmrc", content: "x" })
      yield* succeed("read", { path: "apps/web/.env" })
      yield* fail("read", { path: ".env" })
      assert.lengthOf(asked, 0)
    })
  )

  it.scoped("PP-3: `always` allows the file that was asked about, and no other of its kind", () =>
    Effect.gen(function* () {
      const { asked, fail, succeed } = yield* makeDesk([".env", ".env.local"], {
        answer: ({ resources }) => Effect.succeed(resources[0] === ".env" ? Answer.Always() : Answer.Unavailable())
      })
      yield* succeed("read", { path: ".env" })
      yield* succeed("read", { path: ".env" })
      assert.lengthOf(asked, 1)
      assert.include(asked[0]?.title, "may hold secrets")
      assert.include((yield* fail("read", { path: ".env.local" })).message, `resource ".env.local"`)
    })
  )

  it.scoped("PP-3: a saved approval of everything does not allow what is protected, one that names it does", () =>
    Effect.gen(function* () {
      const store = Context.get(yield* Layer.build(approvals), PermissionStore)
      const { fail, folder, succeed } = yield* makeDesk([".env", "a.txt"], {
        rules: [],
        store: Layer.succeed(PermissionStore, store)
      })
      yield* store.save(folder, [{ permission: "*", resource: "*" }], source)
      yield* succeed("read", { path: "a.txt" })
      yield* fail("read", { path: ".env" })
      yield* store.save(folder, [{ permission: "read", resource: ".env" }], source)
      yield* succeed("read", { path: ".env" })
    })
  )

  it.scoped("PP-6: a search of a folder leaves out files that may hold secrets, and says so; glob names them", () =>
    Effect.gen(function* () {
      const names = [".env", "a.txt", "keys/server.pem", "keys/readme", ".ssh/id_rsa", ".ssh/known"]
      const { asked, succeed } = yield* makeDesk(names)
      const found = textOf(yield* succeed("grep", { pattern: ".", includeIgnored: true }))
      assert.strictEqual(
        found,
        'a.txt:1: a.txt\nkeys/readme:1: keys/readme\n[4 files left out that may hold secrets; name one in "path" to ask.]'
      )
      assert.include(textOf(yield* succeed("glob", { pattern: "**/*" })), "keys/server.pem")
      assert.lengthOf(asked, 0)
    })
  )

  it.scoped("PP-6: a file or folder that was asked about by name is searched, without what its files add to it", () =>
    Effect.gen(function* () {
      const { asked, succeed } = yield* makeDesk([".env", ".ssh/id_rsa", ".ssh/known"], {
        answer: () => Effect.succeed(Answer.Once())
      })
      assert.strictEqual(textOf(yield* succeed("grep", { pattern: ".", path: ".env" })), ".env:1: .env")
      const found = textOf(yield* succeed("grep", { pattern: ".", path: ".ssh" }))
      assert.strictEqual(
        found,
        '.ssh/known:1: .ssh/known\n[1 file left out that may hold secrets; name one in "path" to ask.]'
      )
      assert.lengthOf(asked, 2)
    })
  )

  it.scoped("PP-6: a search reads what a rule for `read` names", () =>
    Effect.gen(function* () {
      const { succeed } = yield* makeDesk([".env"], { rules: [...allowAll, allow("read", ".env")] })
      assert.strictEqual(textOf(yield* succeed("grep", { pattern: "." })), ".env:1: .env")
    })
  )
})
