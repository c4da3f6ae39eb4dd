/** The real path without the thread pool gives what `realpath` gives (EX-112). */
import * as fs from "node:fs/promises"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { realpath } from "../../packages/core/src/support/TextFile.ts"
import { temporaryFolder } from "../support/Harness.ts"

/** The path, or the code of the error. */
const outcome = (found: Promise<string>) =>
  found.catch((cause: unknown) => (cause instanceof Error && "code" in cause ? cause.code : cause))

it.scoped(
  "EX-112: existing, missing, linked and broken paths have the real path or the error that the system gives",
  () =>
    Effect.gen(function* () {
      const top = yield* Effect.flatMap(temporaryFolder, (folder) => Effect.promise(() => fs.realpath(folder)))
      yield* Effect.promise(async () => {
        await fs.mkdir(join(top, "real", "below"), { recursive: true })
        await fs.writeFile(join(top, "real", "file"), "text")
        await fs.symlink(join(top, "real"), join(top, "link"))
        await fs.symlink(join(top, "nowhere"), join(top, "broken"))
        await fs.symlink("loop", join(top, "loop"))
        const names = [
          "real",
          "real/below",
          "real/file",
          "real/missing",
          "missing/below",
          "real/file/below",
          "link",
          "link/below",
          "link/missing",
          "broken",
          "broken/below",
          "loop",
          "real/../real/file",
          "real/below/",
          "./real"
        ]
        for (const name of names) {
          const path = `${top}/${name}`
          assert.strictEqual(await outcome(realpath(path)), await outcome(fs.realpath(path)), name)
        }
        assert.strictEqual(await realpath("."), await fs.realpath("."))
      })
    })
)

it.scoped("EX-112: a folder that is replaced by a link, and a file that appears, count the next time", () =>
  Effect.gen(function* () {
    const top = yield* Effect.flatMap(temporaryFolder, (folder) => Effect.promise(() => fs.realpath(folder)))
    yield* Effect.promise(async () => {
      const [folder, file] = [join(top, "folder"), join(top, "folder", "AGENTS.md")]
      await fs.mkdir(folder)
      assert.strictEqual(await outcome(realpath(file)), "ENOENT")
      await fs.writeFile(file, "Be brief.")
      assert.strictEqual(await realpath(file), file)
      await fs.rename(folder, join(top, "elsewhere"))
      await fs.symlink(join(top, "elsewhere"), folder)
      assert.strictEqual(await realpath(file), join(top, "elsewhere", "AGENTS.md"))
    })
  })
)
