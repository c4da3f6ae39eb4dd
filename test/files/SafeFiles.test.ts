/** Files under a root, and what stands in their way. Real files; links lead out of the root. */
import { execFileSync } from "node:child_process"
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import * as SafeFiles from "../../packages/files/src/disk/SafeFiles.ts"
import type { SafeError } from "../../packages/files/src/layout/Errors.ts"
import { temporaryFolder } from "../support/Database.ts"

const mode = (path: string) => (statSync(path).mode & 0o7777).toString(8)

/** The same permissions for every folder. */
const anyMode = (mode: number) => ({ folder: () => mode, group: () => undefined })

const inRoot = <E>(
  use: (files: SafeFiles.SafeFiles, root: string, outside: string) => Effect.Effect<void, E, Scope.Scope>
) =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    const [root, outside] = [join(folder, "root"), join(folder, "outside")]
    mkdirSync(root)
    mkdirSync(outside)
    writeFileSync(join(outside, "file"), "theirs")
    yield* use(SafeFiles.make({ root }), root, outside)
  })

it.scoped("FI-60: folders and files have exactly their modes, whatever the mask of the process", () =>
  inRoot((files, root) =>
    Effect.gen(function* () {
      for (const mask of [0o000, 0o022, 0o077]) {
        const name = `m${mask}`
        const before = process.umask(mask)
        yield* files
          .ensureFolders([`${name}/b`], anyMode(0o750))
          .pipe(
            Effect.zipRight(files.replace(`${name}/b/value`, "v\n", 0o640)),
            Effect.zipRight(files.append(`${name}/b/log`, "l\n", 0o644)),
            Effect.ensuring(Effect.sync(() => process.umask(before)))
          )
        const modes = ["", "/b", "/b/value", "/b/log"].map((path) => mode(join(root, name + path)))
        assert.deepStrictEqual(modes, ["750", "750", "640", "644"])
      }
      chmodSync(join(root, "m0"), 0o777)
      assert.deepStrictEqual(yield* files.ensureFolders(["m0/b"], anyMode(0o750)), ["m0"])
      assert.strictEqual(mode(join(root, "m0")), "750")
    })
  )
)

const operations: Record<string, (files: SafeFiles.SafeFiles, path: string) => Effect.Effect<unknown, SafeError>> = {
  stamp: (files, path) => files.stamp(path),
  replace: (files, path) => files.replace(path, "x", 0o600),
  append: (files, path) => files.append(path, "x", 0o600),
  sum: (files, path) => files.sum(path),
  digest: (files, path) => files.digest(path, 0, 10),
  readRange: (files, path) => files.readRange(path, 0, 10),
  permit: (files, path) => files.permit(path, 0o600)
}

for (const [name, operation] of Object.entries(operations)) {
  it.scoped(`FI-61: ${name} refuses a link, a folder and a pipe by their path, and follows and changes nothing`, () =>
    inRoot((files, root, outside) =>
      Effect.gen(function* () {
        symlinkSync(join(outside, "file"), join(root, "link"))
        symlinkSync(join(outside, "nothing"), join(root, "dangling"))
        mkdirSync(join(root, "folder"))
        execFileSync("mkfifo", [join(root, "pipe")])
        for (const [path, found] of [
          ["link", "symbolic link"],
          ["dangling", "symbolic link"],
          ["folder", "folder"],
          ["pipe", "other kind of file"]
        ] as const) {
          const error = yield* Effect.flip(operation(files, path))
          assert.deepInclude(error, { _tag: "PathRefused", path: join(root, path), found })
        }
        assert.strictEqual(readFileSync(join(outside, "file"), "utf8"), "theirs")
        assert.isFalse(existsSync(join(outside, "nothing")))
        assert.deepStrictEqual(readdirSync(root).toSorted(), ["dangling", "folder", "link", "pipe"])
      })
    )
  )
}

it.scoped("FI-61: a link or a file on the way is refused, whether the way is looked at or made", () =>
  inRoot((files, root, outside) =>
    Effect.gen(function* () {
      symlinkSync(outside, join(root, "link"))
      writeFileSync(join(root, "file"), "")
      for (const [path, found] of [
        ["link", "symbolic link"],
        ["file", "other kind of file"]
      ] as const) {
        const made = Effect.asVoid(files.ensureFolders([`${path}/x`], anyMode(0o700)))
        for (const use of [Effect.asVoid(files.reach(`${path}/x`)), made]) {
          const error = yield* Effect.flip(use)
          assert.deepInclude(error, { _tag: "PathRefused", path: join(root, path), found })
        }
      }
      assert.deepStrictEqual(readdirSync(outside), ["file"])
      assert.isFalse(yield* files.reach("not/there"))
    })
  )
)

it.scoped(
  "FI-62: a replacement that a kill left half written is overwritten, also where somebody put a link there",
  () =>
    inRoot((files, root, outside) =>
      Effect.gen(function* () {
        writeFileSync(join(root, ".value.tmp"), "half of a long value that was being written")
        yield* files.replace("value", "1\n", 0o600)
        symlinkSync(join(outside, "file"), join(root, ".value.tmp"))
        yield* files.replace("value", "2\n", 0o600)
        assert.strictEqual(readFileSync(join(root, "value"), "utf8"), "2\n")
        assert.strictEqual(readFileSync(join(outside, "file"), "utf8"), "theirs")
        assert.deepStrictEqual(readdirSync(root), ["value"])
      })
    )
)

it.scoped("FI-62: a replacement that fails leaves the value, and nothing beside it", () =>
  inRoot((_, root) =>
    Effect.gen(function* () {
      for (const at of ["write", "permit", "rename"]) {
        const files = SafeFiles.make({
          root,
          before: (operation) => {
            if (operation === at) throw Object.assign(new Error(at), { code: "ENOSPC" })
          }
        })
        writeFileSync(join(root, "value"), "whole\n")
        const error = yield* Effect.flip(files.replace("value", "next\n", 0o600))
        assert.include(
          error.message,
          `${join(root, "value")}: the disk is full; free some space, and the export continues`
        )
        assert.deepStrictEqual(readdirSync(root), ["value"])
        assert.strictEqual(readFileSync(join(root, "value"), "utf8"), "whole\n")
      }
    })
  )
)

it.scoped("FI-63: a file is kept aside under the first free number, and nothing is overwritten", () =>
  inRoot((files, root) =>
    Effect.gen(function* () {
      writeFileSync(join(root, "a.aside.1"), "older")
      mkdirSync(join(root, "a.aside.2"))
      writeFileSync(join(root, "a"), "theirs")
      assert.strictEqual(yield* files.keepAside("a"), "a.aside.3")
      assert.strictEqual(readFileSync(join(root, "a.aside.3"), "utf8"), "theirs")
      assert.strictEqual(readFileSync(join(root, "a.aside.1"), "utf8"), "older")
      assert.isTrue(SafeFiles.isAside("a.aside.3"))
      assert.isFalse(SafeFiles.isAside("a.aside.0"))
    })
  )
)

it.scoped("FI-64: a stamp tells of every change, also of one that kept size and time of content", () =>
  inRoot((files) =>
    Effect.gen(function* () {
      const stamps = new Set<string | undefined>()
      const note = Effect.map(files.stamp("a"), (stamp) => stamps.add(stamp?.text))
      yield* files.replace("a", "1\n", 0o600)
      yield* note
      yield* note
      assert.strictEqual(stamps.size, 1)
      yield* files.append("a", "2\n", 0o600)
      yield* note
      yield* files.replace("a", "3\n4\n", 0o600)
      yield* note
      assert.strictEqual(stamps.size, 3)
      assert.isUndefined(yield* files.stamp("b"))
      assert.strictEqual((yield* files.sum("a", 2)).size, 2)
      assert.deepStrictEqual(Buffer.from(yield* files.readRange("a", 2, 100)).toString(), "4\n")
    })
  )
)
