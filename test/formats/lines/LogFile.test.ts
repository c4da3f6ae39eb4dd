/** Tests the reading of files. Spec: FM-1 in specs/formats.md. */
import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import { join } from "node:path"
import * as FileSystem from "@effect/platform/FileSystem"
import { NodeFileSystem } from "@effect/platform-node"
import { assert, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import * as LogFile from "../../../packages/formats/src/lines/LogFile.ts"

const scratch = Effect.flatMap(FileSystem.FileSystem, (files) => files.makeTempDirectoryScoped())

const digestOf = (parts: Iterable<Uint8Array>) => {
  const hash = createHash("sha256")
  for (const part of parts) hash.update(part)
  return hash.digest("hex")
}

it.layer(NodeFileSystem.layer)("LogFile", (it) => {
  it.scoped("FM-1: the bytes of a file are read in chunks, also of a file that may not be written", () =>
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const path = join(yield* scratch, "log.jsonl")
      const content = Buffer.alloc(700_000, "line\n")
      yield* files.writeFile(path, content, { mode: 0o400 })
      const chunks = yield* Stream.runCollect(LogFile.bytes(path))
      assert.isAbove(chunks.length, 1)
      assert.strictEqual(digestOf(chunks), digestOf([content]))
    })
  )

  it.scoped("FM-1: a missing file, a folder and a pipe fail with a typed error that names the path", () =>
    Effect.gen(function* () {
      const folder = yield* scratch
      const pipe = join(folder, "pipe")
      execFileSync("mkfifo", [pipe])
      for (const [path, reason] of [
        [join(folder, "none"), "missing"],
        [folder, "not a file"],
        [pipe, "not a file"]
      ] as const) {
        const error = yield* Effect.flip(Stream.runDrain(LogFile.bytes(path)))
        assert.deepStrictEqual([error._tag, error.reason, error.path], ["LogUnreadable", reason, path])
        assert.include(error.message, path)
      }
    })
  )
})
