/**
 * Adds the function by which a statement of an append refuses: it fails the transaction, so that the commit that was sent
 * behind it stores nothing. Spec: PG-4, PG-5 in specs/postgres.md.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"

export default Effect.flatMap(SqlClient.SqlClient, (sql) =>
  sql.unsafe(`
    CREATE FUNCTION refuse(code text, refusing text, reason text) RETURNS bigint LANGUAGE plpgsql AS $$
      BEGIN
        RAISE EXCEPTION USING ERRCODE = code, TABLE = refusing, MESSAGE = reason;
      END
    $$
  `)
)
