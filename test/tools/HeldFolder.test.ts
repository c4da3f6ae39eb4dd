import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { dirname, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Either } from "effect"
import { holdFolder, reachFolder } from "../../packages/core/src/workspace/HeldFolder.ts"
import { temporaryFolder } from "./Workbench.ts"

/** A Location with a folder `a/b`, and a folder outside. */
const places = Effect.gen(function* () {
  const top = yield* temporaryFolder
  const [root, outside] = [join(top, "root"), join(top, "outside")]
  mkdirSync(join(root, "a/b"), { recursive: true })
  mkdirSync(join(outside, "b"), { recursive: true })
  return { top, root, outside }
})

const swap = (folder: string, aside: string, target: string) => {
  renameSync(folder, aside)
  symlinkSync(target, folder)
}

describe("a held folder", () => {
  for (const [what, swapped, to] of [
    ["the folder itself", "a/b", "b"],
    ["the folder above it", "a", ""],
    ["the Location", "", ""]
  ] as const) {
    it.scoped(`TO-90: when a link takes the place of ${what}, the file lands where it was meant`, () =>
      Effect.gen(function* () {
        const { outside, root, top } = yield* places
        const at = yield* holdFolder(root, join(root, "a/b"))
        swap(join(root, swapped), join(top, "aside"), join(outside, to))
        writeFileSync(at("temporary"), "mine")
        renameSync(at("temporary"), at("file"))
        assert.deepStrictEqual(readdirSync(outside), ["b"])
        assert.deepStrictEqual(readdirSync(join(outside, "b")), [])
        const kept = join(top, "aside", swapped === "" ? "a/b" : swapped === "a" ? "b" : "", "file")
        assert.strictEqual(readFileSync(kept, "utf8"), "mine")
      })
    )
  }

  it.scoped(
    "TO-90: a link that is there already is refused at every place of the path, and nothing is made behind it",
    () =>
      Effect.gen(function* () {
        for (const swapped of ["a", "a/b"]) {
          const { outside, root, top } = yield* places
          swap(join(root, swapped), join(top, "aside"), outside)
          const held = yield* Effect.either(holdFolder(root, join(root, "a/b/new/deep")))
          assert.isTrue(Either.isLeft(held), swapped)
          assert.deepStrictEqual(readdirSync(outside), ["b"])
          assert.deepStrictEqual(readdirSync(join(outside, "b")), [])
        }
      })
  )

  it.scoped("TO-90: the path of a folder that was made holds as long as the scope", () =>
    Effect.gen(function* () {
      const { outside, root, top } = yield* places
      const made: Array<string> = []
      yield* holdFolder(root, join(root, "a/x/y"), async (at) => {
        mkdirSync(at)
        made.push(at)
      })
      mkdirSync(join(outside, "x/y"), { recursive: true })
      swap(join(root, "a"), join(top, "aside"), outside)
      for (const at of made.toReversed()) rmdirSync(at)
      assert.deepStrictEqual(readdirSync(join(top, "aside")), ["b"])
      assert.deepStrictEqual(readdirSync(join(outside, "x")), ["y"])
    })
  )

  it.effect("TO-90: without descriptors a folder is made by its path, each missing one of it in order", () =>
    Effect.gen(function* () {
      const { root } = yield* places
      const made: Array<string> = []
      const at = yield* Effect.promise(() =>
        reachFolder(join(root, "a/x/y"), async (place) => {
          mkdirSync(place)
          made.push(place)
        })
      )
      assert.deepStrictEqual(made, [join(root, "a/x"), join(root, "a/x/y")])
      assert.strictEqual(at("file"), join(root, "a/x/y/file"))
    }).pipe(Effect.scoped)
  )

  it.scoped("TO-90: missing folders are made, and descriptors are given back", () =>
    Effect.gen(function* () {
      const { root } = yield* places
      const open = () => readdirSync("/proc/self/fd").length
      const before = open()
      for (let time = 0; time < 20; time++) {
        yield* Effect.scoped(holdFolder(root, join(root, "x/y/z")))
        writeFileSync(join(root, "file"), "")
        yield* Effect.ignore(Effect.scoped(holdFolder(root, join(root, "file/z"))))
      }
      assert.isTrue(existsSync(dirname(join(root, "x/y/z"))))
      assert.isBelow(open(), before + 10)
    })
  )
})
