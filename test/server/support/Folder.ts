import { mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"

/** A temporary folder, by its real path; it is removed with the scope. */
export const temporaryFolder = Effect.acquireRelease(
  Effect.sync(() => realpathSync(mkdtempSync(join(tmpdir(), "daybook-")))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)
