/** Maps SQLite errors to a few reasons that a caller can act on. */
import * as SqlError from "@effect/sql/SqlError"
import { Predicate, Schema } from "effect"

/** Why the database failed. */
export const StorageReason = Schema.Literal(
  "busy",
  "read-only",
  "disk-full",
  "corrupt",
  "io",
  "closed",
  "constraint",
  "unknown"
)
export type StorageReason = typeof StorageReason.Type

const byCode: ReadonlyArray<readonly [string, StorageReason]> = [
  ["SQLITE_BUSY", "busy"],
  ["SQLITE_LOCKED", "busy"],
  ["SQLITE_READONLY", "read-only"],
  ["SQLITE_FULL", "disk-full"],
  ["SQLITE_CORRUPT", "corrupt"],
  ["SQLITE_NOTADB", "corrupt"],
  ["SQLITE_IOERR", "io"],
  ["SQLITE_CANTOPEN", "read-only"],
  ["SQLITE_PERM", "read-only"],
  ["SQLITE_CONSTRAINT", "constraint"]
]

/** Returns the reason of a driver error, bare or wrapped in a `SqlError`. */
export const reasonOf = (error: unknown): StorageReason => {
  const cause = error instanceof SqlError.SqlError ? error.cause : error
  if (Predicate.hasProperty(cause, "code") && typeof cause.code === "string") {
    const { code } = cause
    return byCode.find(([prefix]) => code.startsWith(prefix))?.[1] ?? "unknown"
  }
  return cause instanceof TypeError && cause.message.includes("connection is not open") ? "closed" : "unknown"
}
