/** Saved approvals in an in-memory database, and the fields of one that tests compare. */
import { Layer } from "effect"
import type { PermissionStore, SavedApproval } from "../../packages/core/src/permission/PermissionStore.ts"
import * as SqlPermissionStore from "../../packages/core/src/permission/SqlPermissionStore.ts"
import { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { memoryLog } from "./Database.ts"

export const approvals: Layer.Layer<PermissionStore> = Layer.orDie(Layer.provide(SqlPermissionStore.layer, memoryLog))

/** A call that a person answered. */
export const source = { sessionID: SessionID.make("ses_a"), callID: "call_1", agent: "tester" }

export const patterns = (saved: ReadonlyArray<SavedApproval>) =>
  saved.map(({ permission, resource }) => ({ permission, resource }))
