/** The contracts of the log's services, on PostgreSQL. */
import { SqlClient } from "@effect/sql"
import { Context, Effect, Layer, TestServices } from "effect"
import { describe } from "vitest"
import { approvalContract } from "../contracts/ApprovalContract.ts"
import { eventLogContract, sessionOwnerContract } from "../contracts/Contracts.ts"
import * as SqlPermissionStore from "../../packages/core/src/permission/SqlPermissionStore.ts"
import * as SqlSessionOwner from "../../packages/log/src/coordination/SqlSessionOwner.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import * as Postgres from "../../packages/postgres/src/Postgres.ts"
import { tableNames } from "../support/Logs.ts"
import { lacks } from "../support/Parts.ts"
import { retention } from "../support/Pruning.ts"
import { freshSchema, postgresLog, postgresLogAt, warm, withSettlingClock } from "../support/Postgres.ts"
import { storeContracts } from "../support/StoreContracts.ts"

const shared = Effect.map(freshSchema, (config) =>
  Effect.map(Layer.build(postgresLogAt(config)), (context) => Context.get(context, EventLog))
)

/** Every row of the log's tables, to compare before and after. */
const contents = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forEach(tableNames, (table) => sql.unsafe(`SELECT * FROM ${table} each ORDER BY each::text`))
)

describe.skipIf(lacks("postgres"))("PostgreSQL", () => {
  const name = "postgres"

  eventLogContract({ name, layer: postgresLog, contents, shared, retention })
  storeContracts(name, postgresLog)
  approvalContract({
    name,
    layer: Layer.orDie(Layer.provide(SqlPermissionStore.layer, postgresLog)),
    place: Effect.map(freshSchema, (settings) =>
      Layer.provideMerge(
        SqlPermissionStore.layer,
        Layer.merge(postgresLogAt(settings), Layer.scopedDiscard(withSettlingClock))
      )
    )
  })

  sessionOwnerContract({
    name,
    two: Effect.gen(function* () {
      const config = yield* freshSchema
      yield* withSettlingClock
      const opened = Layer.build(
        Layer.fresh(
          Layer.provideMerge(
            SqlSessionOwner.layer({ leaseMs: 3_000 }),
            Layer.provideMerge(warm, Postgres.layer(config))
          )
        )
      )
      // The log's background uses the machine's time: only leases are under test.
      const live = TestServices.provideLive(opened)
      return { one: yield* live, other: yield* live }
    })
  })
})
