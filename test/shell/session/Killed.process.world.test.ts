import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { chownSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { it } from "@effect/vitest"
import { Effect } from "effect"
import { expect } from "vitest"
import { lacks } from "../../support/Parts.ts"
import { program } from "../../support/Program.ts"

const entry = fileURLToPath(new URL("../support/hold.ts", import.meta.url))
const ending = fileURLToPath(new URL("../support/ending.ts", import.meta.url))

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "daybook-killed-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

const started = (command: string, args: ReadonlyArray<string>, user: { readonly uid?: number } = {}) =>
  Effect.acquireRelease(
    Effect.sync(() => spawn(command, args, { ...user, stdio: ["ignore", "pipe", "inherit"] })),
    (child) => Effect.sync(() => child.kill("SIGKILL"))
  )

const kinds = [
  { kind: "no sandbox", absent: false },
  { kind: "sandbox", absent: lacks("bubblewrap") },
  // Without any privilege, the keeper must find and signal the processes of the sandbox as well.
  { kind: "sandbox of another user", absent: lacks("root") || lacks("bubblewrap"), user: { uid: 65_534 } }
]

for (const { absent, kind, user } of kinds) {
  it.scopedLive.skipIf(absent)(`SL-19: kill -9 of the process leaves no process of its shells (${kind})`, () =>
    Effect.gen(function* () {
      const own = yield* folder
      const fifo = join(own, "fifo")
      spawnSync("mkfifo", [fifo])
      if (user !== undefined) for (const path of [own, fifo]) chownSync(path, user.uid, user.uid)
      // Ends when the last process that holds the fifo has ended.
      const reader = yield* started("cat", [fifo])
      const ended = once(reader, "exit")
      const holder = yield* started(process.execPath, [yield* program(entry), fifo, kind], user)
      yield* Effect.promise(() => once(holder.stdout, "data"))
      expect(reader.exitCode).toBeNull()
      holder.kill("SIGKILL")
      yield* Effect.promise(() => ended)
      expect(reader.exitCode).toBe(0)
    })
  )
}

it.scopedLive("SL-583: a process whose shells are closed ends by itself", () =>
  Effect.gen(function* () {
    const child = yield* started(process.execPath, [yield* program(ending)])
    expect(yield* Effect.promise(() => once(child, "exit"))).toEqual([0, null])
  })
)
