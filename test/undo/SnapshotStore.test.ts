/** Snapshots of real folders with real git: what they hold, what they never touch, and that nothing of theirs stays. */
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as SnapshotStore from "../../packages/core/src/snapshot/SnapshotStore.ts"
import * as Upkeep from "../../packages/core/src/snapshot/Upkeep.ts"
import { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { contents, git, options, place, project, repository, workTree, write } from "./support/Repository.ts"
import { changedPaths, changesOf, session, take } from "./support/Snapshotting.ts"

const other = SessionID.make("ses_other")

/** Whether a file below a folder, or an object of a store in it, holds a text. */
const holds = (folder: string, text: string): boolean =>
  existsSync(folder) &&
  (readdirSync(folder, { withFileTypes: true, recursive: true }).some(
    (entry) => entry.isFile() && readFileSync(join(entry.parentPath, entry.name)).includes(text)
  ) ||
    readdirSync(folder).some(
      (name) =>
        name.endsWith(".git") &&
        git(join(folder, name), "cat-file", "--batch", "--batch-all-objects", "--unordered").includes(text)
    ))

describe("snapshots", () => {
  it.scopedLive("UN-2: a snapshot holds tracked, changed and untracked files, and no ignored ones", () =>
    Effect.gen(function* () {
      const { options: given, work } = yield* place
      repository(work, { "a.txt": "1", "b.txt": "1", ".gitignore": "*.log\nbuild/\n", "kept.log": "tracked" })
      write(work, { ".git/info/exclude": "secret\n" })
      const first = yield* take(given, work)
      write(work, { "a.txt": "2", "new/c.txt": "1", "x.log": "1", "build/out": "1", secret: "1", "kept.log": "2" })
      rmSync(join(work, "b.txt"))
      const second = yield* take(given, work)
      const changed = yield* changedPaths(given, work, { before: first.tree, after: second.tree })
      assert.deepStrictEqual(changed, ["a.txt", "b.txt", "kept.log", "new/c.txt"])
      assert.deepStrictEqual((yield* take(given, work)).tree, second.tree)
    })
  )

  it.scopedLive("UN-3: snapshots leave every byte of the person's repository and index as it was", () =>
    Effect.gen(function* () {
      const { options: given, work } = yield* place
      repository(work, { "a.txt": "1", "b.txt": "1" })
      write(work, { "a.txt": "staged" })
      git(work, "add", "a.txt")
      write(work, { "a.txt": "and more" })
      const before = contents(work, true)
      yield* take(given, work)
      write(work, { "b.txt": "2" })
      yield* take(given, work)
      write(work, { "b.txt": "1" })
      assert.deepStrictEqual(contents(work, true), before)
    })
  )

  it.scopedLive("UN-4: hooks, filters and conversions of a repository neither run nor change a byte", () =>
    Effect.gen(function* () {
      const { base, options: given, work } = yield* place
      repository(work, { "a.txt": "1" })
      const ran = join(base, "ran")
      const script = `touch ${ran}; cat`
      git(work, "config", "filter.evil.clean", script)
      git(work, "config", "filter.evil.smudge", script)
      git(work, "config", "filter.evil.process", script)
      git(work, "config", "core.fsmonitor", `touch ${ran}`)
      git(work, "config", "core.autocrlf", "true")
      for (const hook of ["post-index-change", "reference-transaction", "pre-commit"]) {
        writeFileSync(join(work, ".git", "hooks", hook), `#!/bin/sh\ntouch ${ran}\n`, { mode: 0o755 })
      }
      const crlf = "one\r\ntwo\r\n$Id: 1$\r\n"
      const wide = Buffer.from("\uFEFFwide", "utf16le")
      write(work, {
        ".gitattributes": "*.txt filter=evil text eol=lf ident\n*.wide working-tree-encoding=UTF-16LE\n",
        "a.txt": crlf,
        "b.wide": wide
      })
      const first = yield* take(given, work)
      write(work, { "a.txt": "2", "b.wide": "2" })
      const second = yield* take(given, work)
      const changes = yield* changesOf(given, work, { before: first.tree, after: second.tree })
      const read = yield* SnapshotStore.contents(given, yield* workTree(work))
      const stored = yield* Effect.forEach(changes, ({ before, path }) =>
        Effect.map(read(before?.id ?? ""), (bytes) => [path, bytes] as const)
      )
      assert.deepStrictEqual(
        new Map(stored),
        new Map([["a.txt", Buffer.from(crlf)] as const, ["b.wide", wide] as const])
      )
      assert.isFalse(existsSync(ran))
    })
  )

  it.scopedLive("UN-5: a Location below the root covers its folder; a linked work tree and an unborn branch work", () =>
    Effect.gen(function* () {
      const { base, options: given, work } = yield* place
      repository(work, { "sub/a.txt": "1", "b.txt": "1" })
      const first = yield* take(given, join(work, "sub"))
      write(work, { "sub/a.txt": "2", "b.txt": "2" })
      const second = yield* take(given, join(work, "sub"))
      assert.deepStrictEqual(yield* changedPaths(given, work, { before: first.tree, after: second.tree }), [
        "sub/a.txt"
      ])
      const linked = join(base, "linked")
      git(work, "worktree", "add", "--quiet", linked)
      write(work, { ".git/info/exclude": "hidden\n" })
      const before = yield* take(given, linked)
      write(linked, { hidden: "1", "c.txt": "1" })
      const after = yield* take(given, linked)
      assert.deepStrictEqual(yield* changedPaths(given, linked, { before: before.tree, after: after.tree }), ["c.txt"])
      const unborn = join(base, "unborn")
      write(unborn, { "a.txt": "1" })
      git(unborn, "init", "--quiet")
      const empty = yield* take(given, unborn)
      write(unborn, { "a.txt": "2" })
      const full = yield* take(given, unborn)
      assert.deepStrictEqual(yield* changedPaths(given, unborn, { before: empty.tree, after: full.tree }), ["a.txt"])
    })
  )

  it.scopedLive("UN-6: files above the limit and repositories within the folder are left out and named", () =>
    Effect.gen(function* () {
      const { base, work } = yield* place
      const given = options(join(base, "data"), { fileBytes: 10 })
      project(work, { "a.txt": "1", "grows.txt": "1" })
      project(join(work, "nested"), { "n.txt": "1" })
      const first = yield* take(given, work)
      assert.deepStrictEqual(first.omitted, ["nested/"])
      write(work, { "grows.txt": "more than ten bytes", "large.bin": Buffer.alloc(11), "nested/n.txt": "2" })
      const second = yield* take(given, work)
      assert.deepStrictEqual(second.omitted.toSorted(), ["grows.txt", "large.bin", "nested/"])
      assert.deepStrictEqual(yield* changedPaths(given, work, { before: first.tree, after: second.tree }), [
        "grows.txt"
      ])
      const few = options(join(base, "few"), { files: 1 })
      assert.strictEqual((yield* Effect.flip(take(few, work))).reason, "too-large")
    })
  )

  it.scopedLive("UN-6: a submodule is left out and named, and a Location in it has snapshots of its own", () =>
    Effect.gen(function* () {
      const { base, options: given, work } = yield* place
      repository(work, { "a.txt": "1" })
      repository(join(base, "library"), { "l.txt": "1" })
      git(work, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", join(base, "library"), "sub")
      const first = yield* take(given, work)
      assert.deepStrictEqual(first.omitted, ["sub/"])
      const before = yield* take(given, join(work, "sub"))
      write(work, { "sub/l.txt": "2", "a.txt": "2" })
      const second = yield* take(given, work)
      assert.deepStrictEqual(yield* changedPaths(given, work, { before: first.tree, after: second.tree }), ["a.txt"])
      const after = yield* take(given, join(work, "sub"))
      const pair = { before: before.tree, after: after.tree }
      assert.deepStrictEqual(yield* changedPaths(given, join(work, "sub"), pair), ["l.txt"])
    })
  )

  it.scopedLive("UN-7: a change of the same length in the same second is found", () =>
    Effect.gen(function* () {
      const { options: given, work } = yield* place
      project(work, { "a.txt": "0" })
      let last = yield* take(given, work)
      for (const text of ["1", "2", "3", "4", "5", "6"]) {
        write(work, { "a.txt": text })
        const next = yield* take(given, work)
        assert.notStrictEqual(next.tree, last.tree)
        last = next
      }
    })
  )

  it.scopedLive("UN-8: the store is private, and the runtime's own files in the folder are never part of it", () =>
    Effect.gen(function* () {
      const { work } = yield* place
      const data = join(work, "data")
      const given = options(join(data, "snapshots"), {}, [join(work, "log.sqlite")])
      project(work, { "a.txt": "1" })
      write(work, { "log.sqlite": "1" })
      const hidden = { ...given, hidden: [...given.hidden, given.folder] }
      const first = yield* take(hidden, work)
      write(work, { "log.sqlite": "2", "b.txt": "1" })
      const second = yield* take(hidden, work)
      assert.deepStrictEqual(yield* changedPaths(hidden, work, { before: first.tree, after: second.tree }), ["b.txt"])
      for (const entry of readdirSync(given.folder, { withFileTypes: true, recursive: true })) {
        if (entry.isDirectory()) continue
        const { mode } = statSync(join(entry.parentPath, entry.name))
        assert.strictEqual(mode & 0o077, 0, entry.name)
      }
      assert.strictEqual(statSync(given.folder).mode & 0o777, 0o700)
    })
  )

  it.scopedLive("UN-9: forgetting a session leaves no byte of its contents, and keeps those of others", () =>
    Effect.gen(function* () {
      const { options: given, work } = yield* place
      project(work, { "a.txt": "1" })
      write(work, { "mine.txt": "unmistakable words" })
      yield* take(given, work)
      rmSync(join(work, "mine.txt"))
      write(work, { "shared.txt": "words of both" })
      const kept = yield* take(given, work, other)
      assert.isTrue(holds(given.folder, "unmistakable words"))
      yield* Upkeep.forget(given.folder, session)
      assert.isFalse(holds(given.folder, "unmistakable words"))
      assert.isTrue(holds(given.folder, "words of both"))
      // The store still works, also for what it holds.
      write(work, { "shared.txt": "3" })
      const next = yield* take(given, work, other)
      assert.deepStrictEqual(yield* changedPaths(given, work, { before: kept.tree, after: next.tree }), ["shared.txt"])
      yield* Upkeep.forget(given.folder, other)
      assert.isFalse(holds(given.folder, "words of both"))
    })
  )

  it.scopedLive("UN-2: modes, links and binary contents are part of a snapshot", () =>
    Effect.gen(function* () {
      const { options: given, work } = yield* place
      project(work, { run: "1", target: "1" })
      symlinkSync("target", join(work, "link"))
      const first = yield* take(given, work)
      chmodSync(join(work, "run"), 0o755)
      rmSync(join(work, "link"))
      symlinkSync("/etc/passwd", join(work, "link"))
      const second = yield* take(given, work)
      const changes = yield* changesOf(given, work, { before: first.tree, after: second.tree })
      assert.deepStrictEqual(
        changes.map(({ after, before, path }) => [path, before?.mode, after?.mode]),
        [
          ["link", "120000", "120000"],
          ["run", "100644", "100755"]
        ]
      )
    })
  )

  it.scopedLive("UN-2: a folder that became a link is stored as the link, without the files behind it", () =>
    Effect.gen(function* () {
      const { base, options: given, work } = yield* place
      project(work, { "dir/a.txt": "1" })
      const first = yield* take(given, work)
      rmSync(join(work, "dir"), { recursive: true })
      write(base, { "outside/a.txt": "2" })
      symlinkSync(join(base, "outside"), join(work, "dir"))
      const second = yield* take(given, work)
      assert.deepStrictEqual(yield* changedPaths(given, work, { before: first.tree, after: second.tree }), [
        "dir",
        "dir/a.txt"
      ])
    })
  )
})
