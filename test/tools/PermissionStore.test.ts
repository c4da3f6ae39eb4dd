import { SqliteClient } from "@effect/sql-sqlite-node"
import { SqlClient } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as PermissionStore from "../../packages/core/src/permission/PermissionStore.ts"
import * as SqlPermissionStore from "../../packages/core/src/permission/SqlPermissionStore.ts"

const table = Layer.effectDiscard(
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql`CREATE TABLE permission (project TEXT NOT NULL, permission TEXT NOT NULL, resource TEXT NOT NULL,
      time_created INTEGER NOT NULL, PRIMARY KEY (project, permission, resource)) STRICT`
  )
)
const database = Layer.orDie(Layer.provideMerge(table, SqliteClient.layer({ filename: ":memory:" })))
const withoutTable = Layer.orDie(SqliteClient.layer({ filename: ":memory:" }))

const stores = {
  memory: PermissionStore.layerMemory,
  SQL: Layer.provide(SqlPermissionStore.layer, database)
}

for (const [name, layer] of Object.entries(stores)) {
  it.effect(`PM-3: approvals belong to their project, and saving one twice keeps one (${name})`, () =>
    Effect.gen(function* () {
      const store = yield* PermissionStore.PermissionStore
      const [edit, bash] = [
        { permission: "edit", resource: "src/*" },
        { permission: "bash", resource: "it's; DROP TABLE permission" }
      ]
      yield* store.save("/a", [edit])
      yield* store.save("/a", [edit, bash, edit])
      yield* store.save("/b", [])
      assert.sameDeepMembers([...(yield* store.list("/a"))], [edit, bash])
      assert.deepStrictEqual(yield* store.list("/b"), [])
    }).pipe(Effect.provide(layer))
  )
}

it.effect("PM-5: a database without the table is a typed error that says what failed", () =>
  Effect.gen(function* () {
    const store = yield* PermissionStore.PermissionStore
    const error = yield* Effect.flip(store.list("/a"))
    assert.strictEqual(error._tag, "PermissionStoreError")
    assert.include(error.message, "reading them")
  }).pipe(Effect.provide(Layer.provide(SqlPermissionStore.layer, withoutTable)))
)
