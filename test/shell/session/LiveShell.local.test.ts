import { mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { describe } from "vitest"
import * as LocalTransport from "../../../packages/shell/src/transport/LocalTransport.ts"
import { liveShellContract } from "../support/LiveShellContract.ts"
import { processes } from "../support/Processes.ts"

describe.concurrent("with bash", () => {
  liveShellContract({ name: "local", transport: Effect.succeed(LocalTransport.make()), processes, folder: "/usr" })
})

/** A folder of all programs but bash. */
const withoutBash = Effect.acquireRelease(
  Effect.sync(() => {
    const folder = mkdtempSync(join(tmpdir(), "daybook-programs-"))
    const names = ["/bin", "/usr/bin"].flatMap((from) =>
      readdirSync(from).map((name) => [name, join(from, name)] as const)
    )
    for (const [name, path] of new Map(names)) if (name !== "bash") symlinkSync(path, join(folder, name))
    return folder
  }),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

describe.concurrent("SL-12: without bash", () => {
  const transport = Effect.map(withoutBash, (folder) => LocalTransport.make({ env: { PATH: folder } }))
  liveShellContract({
    name: "sh",
    transport,
    processes,
    folder: "/usr",
    closable: "3 4 5 9",
    execFails: "true",
    stopsLists: false
  })
})
