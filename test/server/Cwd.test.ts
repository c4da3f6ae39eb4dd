import { chmodSync, mkdirSync, realpathSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Either, FastCheck } from "effect"
import { recheckCwd, resolveCwd } from "../../packages/server/src/socket/Cwd.ts"
import { cases } from "../support/Cases.ts"
import { temporaryFolder } from "./support/Folder.ts"

const folder = (path: string) => mkdirSync(path, { recursive: true })

/**
 * A world with folders, a file, and links of every kind; beside it a folder whose name it begins, and one outside.
 * The host has `outside/secret` and has no `nothing`.
 */
const makeWorld = Effect.map(temporaryFolder, (base) => {
  const root = join(base, "world")
  for (const path of ["world/work/sub", "world/ä🎉", "world2/work", "outside/secret"]) folder(join(base, path))
  writeFileSync(join(root, "file"), "")
  const links: Readonly<Record<string, string>> = {
    relative: "work/sub",
    absolute: join(root, "work"),
    dotted: "./work/.././work//sub/",
    "work/back": "..",
    chained: "relative",
    "to-root": root,
    "out-relative": "../outside/secret",
    "out-relative-missing": "../nothing/secret",
    "out-absolute": join(base, "outside/secret"),
    "out-absolute-missing": join(base, "nothing/secret"),
    "out-host": "/",
    "out-prefix": join(base, "world2"),
    "out-prefix-missing": join(base, "world3"),
    "out-dotted": `${root}/../outside`,
    "out-chained": "out-relative",
    "work/out": "../../outside",
    "out-and-back": "../world/work",
    "as-in-a-chroot": "/work",
    dangling: "work/none",
    "to-file": "file",
    "loop-a": "loop-b",
    "loop-b": "loop-a",
    self: "self/x"
  }
  for (const [name, target] of Object.entries(links)) symlinkSync(target, join(root, name))
  return { base, root }
})

const resolve = (root: string, cwd: string) => Effect.either(resolveCwd({ root, cwd }))

describe("a working directory inside the agent's world", () => {
  const cases: ReadonlyArray<readonly [string, string]> = [
    ["/", "/"],
    ["//", "/"],
    ["/.", "/"],
    ["/work", "/work"],
    ["/work/", "/work"],
    ["//work///sub/.", "/work/sub"],
    ["/./work/./sub", "/work/sub"],
    ["/ä🎉", "/ä🎉"],
    ["/relative", "/work/sub"],
    ["/absolute/sub", "/work/sub"],
    ["/dotted", "/work/sub"],
    ["/chained", "/work/sub"],
    ["/work/back", "/"],
    ["/work/back/work/back/work", "/work"],
    ["/to-root/to-root/relative", "/work/sub"]
  ]
  it.scoped.each(cases)("CW-3: %s means %s below the root", ([cwd, shown]) =>
    Effect.gen(function* () {
      const { root } = yield* makeWorld
      const resolved = yield* resolveCwd({ root, cwd })
      assert.deepStrictEqual(resolved, { shown, directory: shown === "/" ? root : `${root}${shown}` })
      yield* recheckCwd(root, resolved)
    })
  )

  it.scoped("CW-3: the root may be given through a link; the folder is its real one", () =>
    Effect.gen(function* () {
      const { base, root } = yield* makeWorld
      const given = join(base, "given")
      symlinkSync(root, given)
      symlinkSync(join(given, "work"), join(root, "by-given"))
      for (const cwd of ["/work", "/absolute", "/by-given"]) {
        assert.deepStrictEqual(yield* resolveCwd({ root: given, cwd }), {
          directory: join(root, "work"),
          shown: "/work"
        })
      }
    })
  )
})

describe("a working directory that is refused", () => {
  const cases: ReadonlyArray<readonly [string, string, string]> = [
    ["DC-1", "", "EINVAL"],
    ["DC-1", "work", "EINVAL"],
    ["DC-1", "./work", "EINVAL"],
    ["DC-1", "~", "EINVAL"],
    ["DC-1", "..", "EINVAL"],
    ["DC-1", "/..", "EINVAL"],
    ["DC-1", "/work/..", "EINVAL"],
    ["DC-1", "/work/../work", "EINVAL"],
    ["DC-1", "/none/../work", "EINVAL"],
    ["DC-1", "/out-host/../work", "EINVAL"],
    ["DC-1", "/work\u0000", "EINVAL"],
    ["DC-1", "/work\n/etc", "EINVAL"],
    ["DC-1", "/\ud800", "EINVAL"],
    ["DC-1", "/a".repeat(2048), "EINVAL"],
    ["DC-1", `/${"x".repeat(256)}`, "EINVAL"],
    ["DC-1", "/file", "EINVAL"],
    ["DC-1", "/file/", "EINVAL"],
    ["DC-1", "/file/x", "EINVAL"],
    ["DC-1", "/to-file", "EINVAL"],
    ["DC-1", "/loop-a", "EINVAL"],
    ["DC-1", "/self", "EINVAL"],
    ["CW-2", "/none", "ENOENT"],
    ["CW-2", "/work/none/deeper", "ENOENT"],
    ["CW-2", "/WORK", "ENOENT"],
    ["CW-2", "/work ", "ENOENT"],
    ["CW-2", "/a\u0308🎉", "ENOENT"],
    ["CW-2", "/...", "ENOENT"],
    ["CW-2", "/..work", "ENOENT"],
    ["CW-2", "/dangling", "ENOENT"],
    ["CW-2", `/${"x".repeat(255)}`, "ENOENT"],
    ["CW-3", "/etc", "ENOENT"],
    ["CW-3", "/tmp", "ENOENT"],
    ["CW-3", "/proc/self/root", "ENOENT"],
    ["CW-4", "/out-relative", "EACCES"],
    ["CW-4", "/out-relative-missing", "EACCES"],
    ["CW-4", "/out-relative/none", "EACCES"],
    ["CW-4", "/out-absolute", "EACCES"],
    ["CW-4", "/out-absolute-missing", "EACCES"],
    ["CW-4", "/out-host", "EACCES"],
    ["CW-4", "/out-host/etc", "EACCES"],
    ["CW-4", "/out-prefix", "EACCES"],
    ["CW-4", "/out-prefix-missing", "EACCES"],
    ["CW-4", "/out-dotted", "EACCES"],
    ["CW-4", "/out-chained", "EACCES"],
    ["CW-4", "/work/out", "EACCES"],
    ["CW-4", "/relative/../..", "EINVAL"],
    ["CW-4", "/to-root/out-host", "EACCES"],
    ["CW-4", "/out-and-back", "EACCES"],
    ["CW-4", "/as-in-a-chroot", "EACCES"]
  ]
  it.scoped.each(cases.map(([law, cwd, code]) => [law, JSON.stringify(cwd).slice(0, 40), code, cwd] as const))(
    "%s: %s is %s",
    ([, , code, cwd]) =>
      Effect.gen(function* () {
        const { base, root } = yield* makeWorld
        const refused = yield* Effect.flip(resolveCwd({ root, cwd }))
        assert.strictEqual(refused.code, code)
        assert.notInclude(refused.message, base)
      })
  )

  it.scoped("CW-6: an answer is the same whether or not the host has the path", () =>
    Effect.gen(function* () {
      const { base, root } = yield* makeWorld
      const twins: ReadonlyArray<readonly [string, string]> = [
        [`${base}/outside/secret`, `${base}/nothing/secret`],
        [`${root}/work`, `${root}/none`],
        ["/etc", "/no-such-folder"],
        ["/out-relative", "/out-relative-missing"],
        ["/out-absolute", "/out-absolute-missing"],
        ["/out-prefix", "/out-prefix-missing"],
        ["/work/out/secret", "/work/out/none"],
        ["/out-host/etc/hostname", "/out-host/none"]
      ]
      for (const [there, absent] of twins) {
        const [one, other] = [
          yield* Effect.flip(resolveCwd({ root, cwd: there })),
          yield* Effect.flip(resolveCwd({ root, cwd: absent }))
        ]
        assert.deepStrictEqual({ code: one.code, message: one.message }, { code: other.code, message: other.message })
      }
    })
  )

  it.scoped("CW-4: a world whose name another one's begins is not that one", () =>
    Effect.gen(function* () {
      const { base, root } = yield* makeWorld
      symlinkSync(join(root, "work"), join(base, "world2", "neighbour"))
      const refused = yield* Effect.flip(resolveCwd({ root: join(base, "world2"), cwd: "/neighbour" }))
      assert.strictEqual(refused.code, "EACCES")
    })
  )

  it.scoped("CW-2: without a world there is no working directory", () =>
    Effect.gen(function* () {
      const { base } = yield* makeWorld
      for (const cwd of ["/", "/work"]) {
        const refused = yield* Effect.flip(resolveCwd({ root: join(base, "absent"), cwd }))
        assert.strictEqual(refused.code, "ENOENT")
      }
    })
  )

  it.scoped("DC-1: a link to a name that could not be given is EINVAL", () =>
    Effect.gen(function* () {
      const { root } = yield* makeWorld
      folder(join(root, "two\nlines"))
      symlinkSync("two\nlines", join(root, "plain"))
      assert.strictEqual((yield* Effect.flip(resolveCwd({ root, cwd: "/plain" }))).code, "EINVAL")
    })
  )

  it.scoped("DC-1: a folder that may not be entered is EACCES, as what is in it", () =>
    Effect.gen(function* () {
      const { base, root } = yield* makeWorld
      folder(join(root, "closed/in"))
      chmodSync(base, 0o755)
      chmodSync(join(root, "closed"), 0o600)
      const asNobody = <A, E>(use: Effect.Effect<A, E>) =>
        process.getuid?.() === 0
          ? Effect.acquireUseRelease(
              Effect.sync(() => process.seteuid?.(65_534)),
              () => use,
              () => Effect.sync(() => process.seteuid?.(0))
            )
          : use
      for (const cwd of ["/closed", "/closed/in", "/closed/none"]) {
        const refused = yield* asNobody(Effect.flip(resolveCwd({ root, cwd })))
        assert.strictEqual(refused.code, "EACCES")
      }
    })
  )
})

describe("a working directory that is changed before it is used", () => {
  it.scoped("CW-4: a folder that became a link, went away or became a file is refused at its use", () =>
    Effect.gen(function* () {
      const { base, root } = yield* makeWorld
      const change = (put: (path: string) => void) =>
        Effect.gen(function* () {
          folder(join(root, "there"))
          const resolved = yield* resolveCwd({ root, cwd: "/there" })
          yield* recheckCwd(root, resolved)
          rmSync(join(root, "there"), { recursive: true })
          put(join(root, "there"))
          const refused = yield* Effect.flip(recheckCwd(root, resolved))
          rmSync(join(root, "there"), { recursive: true, force: true })
          return refused.code
        })
      assert.strictEqual(yield* change((path) => symlinkSync(join(base, "outside"), path)), "EACCES")
      assert.strictEqual(yield* change((path) => symlinkSync("work", path)), "EACCES")
      assert.strictEqual(yield* change((path) => writeFileSync(path, "")), "EINVAL")
      assert.strictEqual(yield* change(() => {}), "ENOENT")
    })
  )
})

const piece = FastCheck.constantFrom("a", "b", "c", "d", "e", ".", "")
const target = FastCheck.array(FastCheck.constantFrom("a", "b", "c", "d", "..", "."), { minLength: 1, maxLength: 4 })
const entry = FastCheck.record({
  at: FastCheck.array(FastCheck.constantFrom("a", "b", "c"), { maxLength: 2 }),
  name: FastCheck.constantFrom("a", "b", "c", "d", "e"),
  kind: FastCheck.constantFrom("folder", "relative", "absolute", "outside", "file"),
  target
})

it.scoped.prop(
  "CW-4: what is accepted is what the kernel comes to, and never lies outside, in any tree of folders and links",
  [
    FastCheck.array(entry, { maxLength: 14 }),
    FastCheck.array(FastCheck.array(piece, { maxLength: 5 }), { minLength: 8, maxLength: 8 })
  ],
  ([entries, paths]) =>
    Effect.gen(function* () {
      const base = yield* temporaryFolder
      const root = join(base, "world")
      folder(join(root, "a"))
      folder(join(base, "a/b"))
      for (const { at, kind, name, target } of entries) {
        const path = join(root, ...at, name)
        try {
          if (kind === "folder") folder(path)
          else if (kind === "file") writeFileSync(path, "", { flag: "wx" })
          else {
            const start = { relative: "", absolute: `${root}/`, outside: `${base}/` }[kind]
            symlinkSync(`${start}${target.join("/")}`, path)
          }
        } catch {
          // Its place is taken, or its folder is none: the tree is another one then.
        }
      }
      for (const names of paths) {
        const cwd = `/${names.join("/")}`
        const kernel = Either.try(() => realpathSync(`${root}${cwd}`))
        const ours = yield* resolve(root, cwd)
        if (Either.isRight(ours)) {
          assert.deepStrictEqual(kernel, Either.right(ours.right.directory))
          assert.isTrue(statSync(ours.right.directory).isDirectory())
          assert.isTrue(`${ours.right.directory}/`.startsWith(`${root}/`))
          assert.deepStrictEqual(yield* resolveCwd({ root, cwd: ours.right.shown }), ours.right)
        } else if (Either.isRight(kernel) && statSync(kernel.right).isDirectory()) {
          // A folder after all: then the way to it leads out, or it lies there.
          assert.strictEqual(ours.left.code, "EACCES")
        }
      }
    }),
  { fastCheck: { numRuns: cases(32) } }
)
