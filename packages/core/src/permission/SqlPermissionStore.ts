/** `PermissionStore` over the table `permission`, which the migrations create. Spec: PM-3. */
import { SqlClient, SqlSchema } from "@effect/sql"
import { Clock, Effect, Layer, Schema } from "effect"
import { PermissionStore, PermissionStoreError } from "./PermissionStore.ts"

const ApprovalRow = Schema.Struct({ permission: Schema.String, resource: Schema.String })

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  const select = SqlSchema.findAll({
    Request: Schema.String,
    Result: ApprovalRow,
    execute: (project) => sql`SELECT permission, resource FROM permission
      WHERE project = ${project} ORDER BY time_created, permission, resource`
  })

  return PermissionStore.of({
    list: Effect.fn("PermissionStore.list")((project) =>
      Effect.mapError(select(project), (cause) => new PermissionStoreError({ operation: "reading them", cause }))
    ),
    save: Effect.fn("PermissionStore.save")(function* (project, approvals) {
      if (approvals.length === 0) return
      const now = yield* Clock.currentTimeMillis
      const rows = approvals.map(({ permission, resource }) => ({ project, permission, resource, time_created: now }))
      // One statement, so it is stored whole or not at all without a transaction of its own.
      yield* Effect.mapError(
        sql`INSERT INTO permission ${sql.insert(rows)} ON CONFLICT (project, permission, resource) DO NOTHING`,
        (cause) => new PermissionStoreError({ operation: "saving one", cause })
      )
    })
  })
})

/** Approvals in the host's database. */
export const layer: Layer.Layer<PermissionStore, never, SqlClient.SqlClient> = Layer.effect(PermissionStore, make)
