/** A transport of this machine whose programs find every other program but bash. */
import { mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import * as LocalTransport from "../../../packages/shell/src/transport/LocalTransport.ts"

/** A folder of all programs but bash. */
const programs = Effect.acquireRelease(
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

export const withoutBash = Effect.map(programs, (folder) => LocalTransport.makeUnconfined({ env: { PATH: folder } }))
