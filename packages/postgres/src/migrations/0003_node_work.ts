/** Adds what a node says about its work. Nodes of the version before neither write nor read it. Spec: CU-34 in specs/scale.md. */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"

export default Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql`
    ALTER TABLE cluster_node ADD COLUMN work text NOT NULL
      DEFAULT '{"sessions":[],"lagMs":0,"unindexed":0,"handedOver":0,"takenUp":0}'
  `
)
