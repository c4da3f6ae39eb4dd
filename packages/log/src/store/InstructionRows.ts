/** Selects the instruction files that a session has discovered. Spec: specs/context.md CX-26, CX-43. */
import type * as SqlClient from "@effect/sql/SqlClient"
import { Array as Arr, Effect, Option, Schema } from "effect"
import type { SessionID } from "../domain/Identifiers.ts"

const decode = Schema.decodeUnknownOption(Schema.parseJson(Schema.Array(Schema.NonEmptyString)))

/** The first `limit` files, in order of discovery. */
export const selectInstructionFiles = (sql: SqlClient.SqlClient, sessionID: SessionID, limit: number) =>
  Effect.map(
    sql<{ readonly paths: string }>`SELECT paths FROM session_instruction WHERE session_id = ${sessionID}
      ORDER BY seq LIMIT ${limit}`,
    (rows) => Arr.dedupe(rows.flatMap(({ paths }) => Option.getOrElse(decode(paths), () => []))).slice(0, limit)
  )
