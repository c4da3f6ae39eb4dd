import { spawn } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { build } from "esbuild"
import { waitingFor } from "../support/Waiting.ts"

const program = Effect.acquireRelease(
  Effect.promise(async () => {
    const folder = mkdtempSync(join(tmpdir(), "daybook-blocked-"))
    const outfile = join(folder, "blocked.mjs")
    const entry = fileURLToPath(new URL("support/blocked.ts", import.meta.url))
    await build({ entryPoints: [entry], outfile, bundle: true, platform: "node", format: "esm" })
    return { folder, outfile }
  }),
  ({ folder }) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

/** Runs at a terminal and presses Ctrl-C once the text is there; gives the exit code and what was printed. */
const pressed = Effect.fnUntraced(function* (blockedFor: number, once: string) {
  const { outfile } = yield* program
  const command = `exec '${process.execPath}' '${outfile}' ${blockedFor}`
  return yield* Effect.async<{ readonly code: number | null; readonly text: string }>((resume) => {
    const child = spawn("script", ["-qefc", command, "/dev/null"])
    let text = ""
    child.stdout.on("data", (chunk: Buffer) => {
      const before = text.includes(once)
      text += String(chunk)
      if (!before && text.includes(once)) child.stdin.write("\x03")
    })
    child.on("close", (code) => resume(Effect.succeed({ code, text })))
    return Effect.sync(() => child.kill("SIGKILL"))
  }).pipe(waitingFor(`the end of ${command}`))
})

describe("a blocked event loop", () => {
  it.scopedLive("LM-24: Ctrl-C ends a process whose loop is blocked, which says so", () =>
    Effect.gen(function* () {
      const { code, text } = yield* pressed(600_000, "Ctrl-C ends it now")
      assert.strictEqual(code, 137, text)
      assert.notInclude(text, "handled")
    })
  )

  it.scopedLive("LM-24: when the loop turns again, Ctrl-C is the process's own", () =>
    Effect.gen(function* () {
      const { code, text } = yield* pressed(1_500, "free")
      assert.include(text, "Ctrl-C ends it now")
      assert.include(text, "handled")
      assert.strictEqual(code, 3)
    })
  )
})
