/** Creates the table of the nodes that run sessions. Spec: CU-34 in specs/scale.md. */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"

export default Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql`
    CREATE TABLE cluster_node (
      address text COLLATE "C" PRIMARY KEY,
      workspaces text NOT NULL,
      running integer NOT NULL,
      leaving boolean NOT NULL,
      since timestamptz NOT NULL,
      beat timestamptz NOT NULL
    )
  `
)
