/** Tools on files that may not be written, in a process without privileges: run by `ReadOnly.test.ts`. */
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Layer } from "effect"
import { PermissionStore } from "../../packages/core/src/permission/PermissionStore.ts"
import { patchOf } from "./PatchTree.ts"
import { makeWorkbench } from "./Workbench.ts"

const attempts = [
  ["write", { path: "kept", content: "new" }],
  ["edit", { path: "kept", oldText: "old", newText: "new" }],
  ["apply_patch", { patch: patchOf("*** Update File: kept", "-old", "+new") }],
  ["apply_patch", { patch: patchOf("*** Update File: kept", "*** Move to: moved") }],
  ["apply_patch", { patch: patchOf("*** Delete File: kept") }],
  ["apply_patch", { patch: patchOf("*** Add File: free", "+new", "*** Update File: kept", "-old", "+new") }],
  ["write", { path: "closed/new", content: "new" }],
  ["write", { path: "closed/deep/new", content: "new" }],
  ["apply_patch", { patch: patchOf("*** Add File: closed/new", "+new") }],
  ["read", { path: "hidden" }]
] as const

/** The rules allow everything, so nothing is asked of the store. */
const withoutApprovals = Layer.mock(PermissionStore, {})

const results = await Effect.runPromise(
  Effect.scoped(
    Effect.gen(function* () {
      const bench = yield* makeWorkbench({ store: withoutApprovals })
      const at = (name: string) => join(bench.folder, name)
      writeFileSync(at("kept"), "old\n", { mode: 0o444 })
      writeFileSync(at("hidden"), "secret", { mode: 0o000 })
      mkdirSync(at("closed"), { mode: 0o555 })
      const failures = yield* Effect.forEach(attempts, ([tool, input]) => bench.fail(tool, input))
      const found = {
        kept: readFileSync(at("kept"), "utf8"),
        mode: statSync(at("kept")).mode & 0o777,
        names: readdirSync(bench.folder, { recursive: true }).map(String).toSorted()
      }
      chmodSync(at("closed"), 0o755)
      return { uid: process.getuid?.(), failures, found }
    })
  )
)
console.log(JSON.stringify(results))
