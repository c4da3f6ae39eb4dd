import { execFileSync } from "node:child_process"
import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { agentDefaultCwd } from "../../packages/server/src/socket/Cwd.ts"
import { temporaryFolder } from "./support/Folder.ts"

const mode = (path: string) => (statSync(path).mode & 0o777).toString(8)

/** A root whose agent `coder` has a folder for its file. */
const withFolder = Effect.map(temporaryFolder, (root) => {
  mkdirSync(join(root, "agent/coder.d"), { recursive: true })
  return { root, file: join(root, "agent/coder.d/cwd") }
})

it.scoped("CW-1: an agent without a default gets `/`, in a file of its owner's only", () =>
  Effect.gen(function* () {
    const root = yield* temporaryFolder
    assert.strictEqual(yield* agentDefaultCwd({ root, name: "coder" }), "/")
    const folder = join(root, "agent/coder.d")
    assert.strictEqual(readFileSync(join(folder, "cwd"), "utf8"), "/\n")
    assert.deepStrictEqual([mode(join(folder, "cwd")), mode(folder), mode(join(root, "agent"))], ["600", "700", "700"])
    assert.deepStrictEqual(readdirSync(folder), ["cwd"])
  })
)

it.scoped("CW-1: many first uses at once make one file, and none sees it half", () =>
  Effect.gen(function* () {
    const root = yield* temporaryFolder
    const found = yield* Effect.replicateEffect(agentDefaultCwd({ root, name: "coder" }), 50, {
      concurrency: "unbounded"
    })
    assert.deepStrictEqual([...new Set(found)], ["/"])
    assert.deepStrictEqual(readdirSync(join(root, "agent/coder.d")), ["cwd"])
  })
)

it.scoped("CW-1: the operator's line is the default, with or without its end, and stays as it is", () =>
  Effect.gen(function* () {
    const { file, root } = yield* withFolder
    for (const text of ["/work\n", "/work", "/ä 🎉\n"]) {
      writeFileSync(file, text)
      assert.strictEqual(yield* agentDefaultCwd({ root, name: "coder" }), text.trimEnd())
      assert.strictEqual(readFileSync(file, "utf8"), text)
    }
  })
)

const junk: ReadonlyArray<readonly [string, string | Uint8Array]> = [
  ["empty", ""],
  ["an empty line", "\n"],
  ["relative", "work\n"],
  ["upwards", "/work/..\n"],
  ["of two lines", "/work\n/etc\n"],
  ["with a line end of another system", "/work\r\n"],
  ["no UTF-8", Uint8Array.of(0x2f, 0xff, 0x0a)],
  ["with a byte order mark", "\ufeff/work\n"],
  ["far too long", "/x".repeat(100_000)]
]
it.scoped.each(junk)("SO-49: a default that is %s is EIO, and says which file", ([, text]) =>
  Effect.gen(function* () {
    const { file, root } = yield* withFolder
    writeFileSync(file, text)
    const error = yield* Effect.flip(agentDefaultCwd({ root, name: "coder" }))
    assert.deepInclude(error, { code: "EIO", file: "agent/coder.d/cwd" })
    assert.include(error.message, "agent/coder.d/cwd cannot be used")
    assert.notInclude(error.message, root)
    assert.isBelow(error.message.length, 300)
  })
)

it.scoped("SC-3: a default that is a link, a folder or a pipe is EIO, and none is followed or waited for", () =>
  Effect.gen(function* () {
    const root = yield* temporaryFolder
    const agents: ReadonlyArray<readonly [string, (path: string) => void]> = [
      ["link", (path) => symlinkSync("/etc/hostname", path)],
      ["broken", (path) => symlinkSync("nowhere", path)],
      ["folder", (path) => mkdirSync(path)],
      ["pipe", (path) => void execFileSync("mkfifo", [path])]
    ]
    for (const [name, put] of agents) {
      mkdirSync(join(root, `agent/${name}.d`), { recursive: true })
      put(join(root, `agent/${name}.d/cwd`))
      assert.strictEqual((yield* Effect.flip(agentDefaultCwd({ root, name }))).code, "EIO")
    }
  })
)

it.scoped("SC-3: a link in the place of the agent's folder is EIO, and nothing is written through it", () =>
  Effect.gen(function* () {
    const root = yield* temporaryFolder
    mkdirSync(join(root, "elsewhere"))
    mkdirSync(join(root, "agent"))
    symlinkSync("../elsewhere", join(root, "agent/coder.d"))
    assert.strictEqual((yield* Effect.flip(agentDefaultCwd({ root, name: "coder" }))).code, "EIO")
    assert.deepStrictEqual(readdirSync(join(root, "elsewhere")), [])
  })
)

it.scoped("NA-1: a name that is none makes no folder", () =>
  Effect.gen(function* () {
    const root = yield* temporaryFolder
    for (const name of ["../x", "", "a/b", ".", "a\0"]) {
      assert.strictEqual((yield* Effect.flip(agentDefaultCwd({ root, name }))).code, "EIO")
    }
    assert.deepStrictEqual(readdirSync(root), [])
  })
)
