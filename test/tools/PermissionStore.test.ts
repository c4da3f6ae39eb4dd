import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as SqlPermissionStore from "../../packages/core/src/permission/SqlPermissionStore.ts"
import { folderIdentity } from "../../packages/core/src/trust/ProjectTrust.ts"
import { approvalContract } from "../contracts/ApprovalContract.ts"
import { approvals } from "../support/Approvals.ts"
import { logAt, temporaryDatabase, temporaryFolder } from "../support/Database.ts"

approvalContract({
  name: "file",
  layer: approvals,
  place: Effect.map(temporaryDatabase, (filename) => Layer.provideMerge(SqlPermissionStore.layer, logAt(filename)))
})

it.scoped("PM-42: two folders differ, two spellings of one do not", () =>
  Effect.gen(function* () {
    const base = yield* temporaryFolder
    const folder = join(base, "clone")
    mkdirSync(folder)
    const [one, two] = yield* Effect.promise(() => Promise.all([folder, base].map(folderIdentity)))
    assert.notStrictEqual(one, two)
    assert.strictEqual(yield* Effect.promise(() => folderIdentity(join(folder, "..", "clone"))), one)
  })
)
