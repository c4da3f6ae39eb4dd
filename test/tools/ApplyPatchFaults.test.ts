import { chmodSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Queue } from "effect"
import { Answer } from "../../packages/core/src/permission/PermissionAsker.ts"
import type { CallOutcome } from "../../packages/core/src/tool/ToolRegistry.ts"
import * as LocationFiles from "../../packages/core/src/workspace/LocationFiles.ts"
import { makeApplyPatch } from "../../packages/tools/src/ApplyPatch.ts"
import { type FileOperations, nodeFileOperations } from "../../packages/tools/src/patch/PatchCommit.ts"
import { patchOf, treeOf } from "./PatchTree.ts"
import { makeWorkbench, type Options } from "./Workbench.ts"

type Tree = ReturnType<typeof treeOf>

const fault = (code: string) => Object.assign(new Error(`${code}: injected`), { code })

/** The real operations; `before` runs ahead of each, may fail in its place, and may stop it halfway. */
const operations = (before: (name: keyof FileOperations, path: string) => Promise<void>): FileOperations => {
  const real = nodeFileOperations
  return {
    stat: (path) => before("stat", path).then(() => real.stat(path)),
    makeFolder: (path) => before("makeFolder", path).then(() => real.makeFolder(path)),
    removeFolder: (path) => before("removeFolder", path).then(() => real.removeFolder(path)),
    write: (path, content, mode) =>
      before("write", path).then(
        () => real.write(path, content, mode),
        async (cause: unknown) => {
          // A full disk leaves a part of the file.
          await real.write(path, content.slice(0, content.length / 2), mode)
          throw cause
        }
      ),
    link: (from, to) => before("link", to).then(() => real.link(from, to)),
    copy: (from, to) => before("copy", to).then(() => real.copy(from, to)),
    rename: (from, to) => before("rename", to).then(() => real.rename(from, to)),
    remove: (path) => before("remove", path).then(() => real.remove(path))
  }
}

/** A workbench whose `apply_patch` works on these operations. */
const makeFaultyBench = Effect.fnUntraced(function* (io: FileOperations, options: Options = {}) {
  const bench = yield* makeWorkbench(options)
  const tool = yield* makeApplyPatch(io).pipe(Effect.provide(LocationFiles.layer), Effect.provide(bench.context))
  yield* bench.registry.register([tool])
  return bench
})

const files: Readonly<Record<string, string>> = {
  "u.txt": "a\nb\n",
  "m.txt": "x\n",
  "p.txt": "as it was",
  "d.txt": "d",
  "other.txt": "o"
}

const patch = patchOf(
  "*** Add File: new/deep/a.txt",
  "+one",
  "*** Update File: u.txt",
  "-b",
  "+B",
  "*** Update File: m.txt",
  "*** Move to: moved/m.txt",
  "-x",
  "+y",
  "*** Update File: p.txt",
  "*** Move to: q.txt",
  "*** Delete File: d.txt"
)

/** Every path that the patch names. */
const named = ["new/deep/a.txt", "u.txt", "m.txt", "moved/m.txt", "p.txt", "q.txt", "d.txt"]

const moves = [
  ["m.txt", "moved/m.txt"],
  ["p.txt", "q.txt"]
] as const

const reset = (folder: string) => {
  rmSync(folder, { recursive: true })
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), content)
  }
  chmodSync(join(folder, "u.txt"), 0o751)
}

const without = (tree: Tree, paths: ReadonlyArray<string>) =>
  Object.fromEntries(Object.entries(tree).filter(([path]) => !paths.includes(path)))

/** The names that a message lists as files that may be left behind. */
const leftIn = (message: string): ReadonlyArray<string> => {
  const list = /May be left behind: (.*)\.$/mu.exec(message)?.[1]
  return list === undefined ? [] : list.split(", ").map((name) => String(JSON.parse(name)))
}

/** Holds a result against the disk: which of the three ends it is. */
const judge = (settled: CallOutcome, before: Tree, done: Tree, after: Tree): "done" | "undone" | "part" => {
  if (settled._tag === "Success") {
    const left = settled.output.structured["leftBehind"] ?? []
    assert(Array.isArray(left))
    assert.deepStrictEqual(without(after, left.map(String)), done)
    for (const name of left) assert.property(after, String(name))
    return "done"
  }
  const { message, type } = settled.error
  const left = leftIn(message)
  if (type !== "patch.partial") {
    assert.match(message, /No file was changed\./)
    // A folder goes with the last thing in it.
    const around = Object.keys(after).filter((path) => left.some((name) => name.startsWith(`${path}/`)))
    assert.deepStrictEqual(without(after, [...left, ...around]), before, message)
    return "undone"
  }
  const states = new Map<string, { readonly state: string; readonly original: string | undefined }>()
  for (const line of message.split("\n").filter((one) => one.startsWith("- "))) {
    const [, state, path, original] =
      /^- (applied|rolled back|not touched): "([^"]*)"(?: is \w+(?:; its original is "([^"]*)")?)?$/u.exec(line) ?? []
    assert(state !== undefined && path !== undefined, line)
    assert.isFalse(states.has(path), `${path} is listed twice`)
    states.set(path, { state, original })
  }
  assert.deepStrictEqual([...states.keys()].toSorted(), named.toSorted())
  const originals: Array<string> = []
  for (const [path, { original, state }] of states) {
    assert.strictEqual(after[path], (state === "applied" ? done : before)[path], `${path} in\n${message}`)
    // Whatever was there and is not as it was lies where the message says.
    if (state === "applied" && before[path] !== undefined) {
      assert(original !== undefined, message)
      assert.strictEqual(after[original], before[path], message)
      originals.push(original)
    }
  }
  // A moved file leaves its new place only for its old one.
  for (const [from, to] of moves) {
    if (states.get(from)?.state === "applied") assert.strictEqual(states.get(to)?.state, "applied", message)
  }
  const others = (tree: Tree) =>
    without(Object.fromEntries(Object.entries(tree).filter(([, what]) => what !== "folder")), [
      ...named,
      ...originals,
      ...left
    ])
  assert.deepStrictEqual(others(after), others(before), message)
  assert.isTrue([...states.values()].some(({ state }) => state === "applied"))
  return "part"
}

/** Applies the patch under every plan of faults, and counts how it ended. `fails` says which operations fail. */
const attack = Effect.fnUntraced(function* (
  plans: (operations: number) => Iterable<(count: number) => boolean>,
  links: boolean
) {
  let fails: (count: number) => boolean = () => false
  let count = 0
  const bench = yield* makeFaultyBench(
    operations(async (name) => {
      // A file system without second names says so each time, which is no fault.
      if (name === "link" && !links) throw fault("EPERM")
      count++
      if (fails(count)) throw fault("EIO")
    })
  )
  reset(bench.folder)
  const before = treeOf(bench.folder)
  yield* bench.succeed("apply_patch", { patch })
  const done = treeOf(bench.folder)
  assert.strictEqual(done["u.txt"], "751 a\nB\n")
  const ends = { done: 0, undone: 0, part: 0 }
  for (const plan of plans(count)) {
    reset(bench.folder)
    fails = plan
    count = 0
    const settled = yield* bench.settle("apply_patch", { patch })
    ends[judge(settled, before, done, treeOf(bench.folder))]++
  }
  return ends
})

const upTo = (last: number) => Array.from({ length: last }, (_, index) => index + 1)

describe("apply_patch on a failing disk", () => {
  const disks = [
    ["with hard links", true],
    ["without hard links", false]
  ] as const

  it.scoped.each(disks)(
    "TO-116, TO-75: one operation failing, for each of them, leaves all or nothing, %s",
    ([, links]) =>
      Effect.gen(function* () {
        const ends = yield* attack((all) => upTo(all).map((nth) => (count) => count === nth), links)
        assert.strictEqual(ends.part, 0)
        assert.isAbove(ends.undone, 15)
        // Those that fail are of the clearing away.
        assert.isAbove(ends.done, 0)
      })
  )

  it.scoped.each(disks)(
    "TO-116, TO-75: a disk that fails from an operation on is reported file by file, %s",
    ([, links]) =>
      Effect.gen(function* () {
        const ends = yield* attack((all) => upTo(all).map((nth) => (count) => count >= nth), links)
        assert.isAbove(ends.part, 3)
        assert.isAbove(ends.undone, 5)
      })
  )

  it.scoped("TO-116, TO-75: a second fault, while the first is undone, is reported file by file", () =>
    Effect.gen(function* () {
      const ends = yield* attack(
        (all) =>
          upTo(all)
            // Before, no file has its new state yet.
            .filter((first) => first > all / 3)
            .flatMap((first) => upTo(4).map((gap) => (count: number) => count === first || count === first + gap)),
        true
      )
      assert.isAbove(ends.part, 10)
      assert.isAbove(ends.undone, 10)
    })
  )

  it.scoped("TO-116, TO-75: a fault says what failed, and that nothing was changed", () =>
    Effect.gen(function* () {
      const bench = yield* makeFaultyBench(
        operations(async (name) => {
          if (name === "write") throw fault("ENOSPC")
        })
      )
      reset(bench.folder)
      const error = yield* bench.fail("apply_patch", { patch })
      assert.strictEqual(error.type, "file.access")
      assert.strictEqual(
        error.message,
        `cannot write "new/deep/a.txt": the disk is full (ENOSPC). No file was changed.`
      )
    })
  )

  it.scoped("TO-75: a file that changes between reading and replacing is not overwritten", () =>
    Effect.gen(function* () {
      const folders: Array<string> = []
      const bench = yield* makeFaultyBench(
        operations(async (name) => {
          const folder = name === "write" ? folders.pop() : undefined
          if (folder !== undefined) writeFileSync(join(folder, "d.txt"), "somebody else's")
        })
      )
      reset(bench.folder)
      const before = treeOf(bench.folder)
      folders.push(bench.folder)
      const error = yield* bench.fail("apply_patch", { patch })
      assert.strictEqual(error.type, "edit.refused")
      assert.match(error.message, /"d.txt" was changed by another program meanwhile.* No file was changed/)
      assert.deepStrictEqual(without(treeOf(bench.folder), ["d.txt"]), without(before, ["d.txt"]))
      assert.match(treeOf(bench.folder)["d.txt"] ?? "", /somebody else's$/)
    })
  )

  it.scoped("TO-75: a file that appears at a new file's path is not overwritten", () =>
    Effect.gen(function* () {
      let folder: string | undefined
      const bench = yield* makeFaultyBench(
        operations(async (name, path) => {
          if (name === "link" && path.endsWith("q.txt") && folder !== undefined) {
            writeFileSync(join(folder, "q.txt"), "somebody else's")
          }
        })
      )
      reset(bench.folder)
      const before = treeOf(bench.folder)
      folder = bench.folder
      const error = yield* bench.fail("apply_patch", { patch })
      assert.match(error.message, /cannot create "q.txt": it already exists \(EEXIST\)\. No file was changed/)
      const after = treeOf(bench.folder)
      assert.deepStrictEqual(without(after, ["q.txt"]), before)
      assert.match(after["q.txt"] ?? "", /somebody else's$/)
    })
  )

  it.scoped("TO-32: a folder that becomes a link to outside while folders are made is not written through", () =>
    Effect.gen(function* () {
      let outside: string | undefined
      const bench = yield* makeFaultyBench(
        operations(async (name, path) => {
          if (name !== "makeFolder" || outside === undefined) return
          symlinkSync(outside, path)
          outside = undefined
        })
      )
      reset(bench.folder)
      const before = treeOf(bench.folder)
      outside = bench.outside
      const error = yield* bench.fail("apply_patch", { patch: patchOf("*** Add File: new/a.txt", "+x") })
      assert.strictEqual(error.type, "path.outside")
      assert.deepStrictEqual(treeOf(bench.outside), {})
      assert.deepStrictEqual(without(treeOf(bench.folder), ["new"]), before)
    })
  )

  it.scoped(
    "TO-90: a folder that becomes a link to outside, before each of the operations, redirects none of them",
    () =>
      Effect.gen(function* () {
        let count = 0
        let swapAt = 0
        let folders: readonly [string, string] = ["", ""]
        const bench = yield* makeFaultyBench(
          operations(async () => {
            if (++count !== swapAt) return
            const [folder, outside] = folders
            renameSync(join(folder, "sub"), join(folder, "aside"))
            symlinkSync(outside, join(folder, "sub"))
          })
        )
        folders = [bench.folder, bench.outside]
        const inSub = patch.replaceAll(/^(\*\*\* (?:Add File|Update File|Delete File|Move to): )/gmu, "$1sub/")
        const prepare = () => {
          rmSync(bench.folder, { recursive: true })
          rmSync(bench.outside, { recursive: true })
          for (const root of [join(bench.folder, "sub"), bench.outside]) {
            mkdirSync(root, { recursive: true })
            reset(root)
          }
          mkdirSync(join(bench.outside, "new"))
          count = 0
          return treeOf(bench.outside)
        }
        prepare()
        yield* bench.succeed("apply_patch", { patch: inSub })
        const done = treeOf(join(bench.folder, "sub"))
        for (const nth of upTo(count)) {
          const before = prepare()
          swapAt = nth
          const settled = yield* bench.settle("apply_patch", { patch: inSub })
          assert.deepStrictEqual(treeOf(bench.outside), before, `operation ${nth}`)
          const inside = treeOf(join(bench.folder, "aside"))
          if (settled._tag === "Success") assert.deepStrictEqual(inside, done)
          else assert.deepStrictEqual(inside, without(before, ["new"]), settled.error.message)
        }
        assert.isAbove(count, 0)
      })
  )

  it.scoped("TO-77: patches that name the same files in other orders never wait for each other for ever", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const gate = yield* Deferred.make<void>()
      const asked = yield* Queue.unbounded<void>()
      const bench = yield* makeFaultyBench(
        operations(async (name, path) => {
          if (name !== "rename" || !path.endsWith("u.txt")) return
          await Effect.runPromise(Effect.zipRight(Deferred.succeed(begun, undefined), Deferred.await(gate)))
        }),
        { rules: [], answer: () => Effect.as(Queue.offer(asked, undefined), Answer.Once()) }
      )
      reset(bench.folder)
      /** Starts a patch of these files, and goes on when it has been allowed and waits for a lock, or works. */
      const start = Effect.fnUntraced(function* (line: string, ...names: ReadonlyArray<string>) {
        const lines = names.flatMap((name) => [`*** Update File: ${name}`, `+${line}`, "*** End of File"])
        const call = yield* Effect.fork(bench.succeed("apply_patch", { patch: patchOf(...lines) }))
        yield* Queue.take(asked)
        yield* Effect.yieldNow().pipe(Effect.repeatN(100))
        return call
      })
      const holder = yield* start("1", "u.txt")
      yield* Deferred.await(begun)
      const first = yield* start("2", "m.txt", "u.txt", "d.txt")
      const second = yield* start("3", "d.txt", "m.txt")
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.joinAll([holder, first, second])
      assert.match(treeOf(bench.folder)["m.txt"] ?? "", /x\n2\n3\n$/)
    })
  )

  it.scoped("TO-117, TO-75: an interruption while files are changed waits until all are", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const gate = yield* Deferred.make<void>()
      const bench = yield* makeFaultyBench(
        operations(async (name, path) => {
          if (name !== "rename" || !path.endsWith("u.txt")) return
          await Effect.runPromise(Effect.zipRight(Deferred.succeed(begun, undefined), Deferred.await(gate)))
        })
      )
      reset(bench.folder)
      const call = yield* Effect.fork(bench.settle("apply_patch", { patch }))
      yield* Deferred.await(begun)
      const interruption = yield* Effect.fork(Fiber.interrupt(call))
      yield* Effect.yieldNow()
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(interruption)
      const after = treeOf(bench.folder)
      assert.deepStrictEqual(
        Object.keys(after).filter((path) => after[path] !== "folder"),
        ["moved/m.txt", "new/deep/a.txt", "other.txt", "q.txt", "u.txt"]
      )
      assert.strictEqual(after["u.txt"], "751 a\nB\n")
    })
  )
})
