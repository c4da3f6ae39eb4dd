import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { it } from "@effect/vitest"
import { Effect } from "effect"
import { expect } from "vitest"
import { program } from "../../support/Program.ts"

const entry = fileURLToPath(new URL("../support/hold.ts", import.meta.url))

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "daybook-killed-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

const started = (command: string, args: ReadonlyArray<string>) =>
  Effect.acquireRelease(
    Effect.sync(() => spawn(command, args, { stdio: ["ignore", "pipe", "inherit"] })),
    (child) => Effect.sync(() => child.kill("SIGKILL"))
  )

const kinds = ["own control stream", "fifo", ...(process.platform === "linux" ? ["sandbox"] : [])]

for (const kind of kinds) {
  it.scopedLive(`SL-19: kill -9 of the process leaves no process of its shells (${kind})`, () =>
    Effect.gen(function* () {
      const fifo = join(yield* folder, "fifo")
      spawnSync("mkfifo", [fifo])
      // Ends when the last process that holds the fifo has ended.
      const reader = yield* started("cat", [fifo])
      const ended = once(reader, "exit")
      const holder = yield* started(process.execPath, [yield* program(entry), fifo, kind])
      yield* Effect.promise(() => once(holder.stdout, "data"))
      expect(reader.exitCode).toBeNull()
      holder.kill("SIGKILL")
      yield* Effect.promise(() => ended)
      expect(reader.exitCode).toBe(0)
    })
  )
}
