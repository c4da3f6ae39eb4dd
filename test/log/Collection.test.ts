/** Memory that a thread gives back, in a process whose heap has its default limits. */
import { assert, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"
import { program } from "../support/Program.ts"

it.effect("CL-313: a collection makes a young generation small that has grown, and the process ends", () =>
  Effect.gen(function* () {
    const file = yield* program(fileURLToPath(new URL("support/GrownHeap.ts", import.meta.url)))
    const { signal, status, stderr, stdout } = spawnSync(process.execPath, [file], {
      encoding: "utf8",
      timeout: 25_000
    })
    assert.deepStrictEqual([signal, status, stderr], [null, 0, ""])
    const { after, before } = JSON.parse(stdout)
    assert.isAbove(before, 8 * 1024 * 1024)
    assert.isBelow(after, before / 4)
  })
)
