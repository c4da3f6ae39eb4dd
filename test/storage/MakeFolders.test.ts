import { mkdirSync, statSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { FileSystem } from "@effect/platform"
import { NodeFileSystem } from "@effect/platform-node"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { makeFolders } from "../../packages/log/src/storage/PrivateFile.ts"

const make = (path: string, mode?: number) =>
  Effect.tryPromise({ try: () => makeFolders(path, mode), catch: (cause) => (cause as NodeJS.ErrnoException).code })

const temporary = Effect.flatMap(FileSystem.FileSystem, (fs) => fs.makeTempDirectoryScoped()).pipe(
  Effect.provide(NodeFileSystem.layer)
)

it.scoped("ST-19: a folder is made with all that is missing above it, once for all who ask at the same time", () =>
  Effect.gen(function* () {
    const root = yield* temporary
    const deep = join(root, "a/b/c")
    yield* Effect.all(
      Array.from({ length: 8 }, () => make(deep, 0o700)),
      { concurrency: "unbounded" }
    )
    assert.deepStrictEqual(
      ["a", "a/b", "a/b/c"].map((name) => statSync(join(root, name)).mode & 0o777),
      [0o700, 0o700, 0o700]
    )
    mkdirSync(join(root, "here"), 0o750)
    symlinkSync(join(root, "here"), join(root, "link"))
    yield* make(join(root, "link"), 0o700)
    assert.strictEqual(statSync(join(root, "here")).mode & 0o777, 0o750)
  })
)

it.scoped("ST-19: a folder that cannot be made is refused at once with the system's code", () =>
  Effect.gen(function* () {
    const root = yield* temporary
    writeFileSync(join(root, "file"), "")
    symlinkSync(join(root, "nowhere"), join(root, "dangling"))
    for (const [path, code] of [
      [join(root, "file"), "EEXIST"],
      [join(root, "file/below"), "ENOTDIR"],
      [join(root, "dangling"), "EEXIST"],
      ["/proc/daybook", "ENOENT"],
      ["/proc/daybook/deeper", "ENOENT"]
    ] as const) {
      assert.strictEqual(yield* Effect.flip(make(path)), code, path)
    }
  })
)
