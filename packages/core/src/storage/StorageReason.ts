/** What went wrong in SQLite, in a handful of words that a caller can act on. */
import { SqlError } from "@effect/sql"
import { Predicate, Schema } from "effect"

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

/** The reason behind an error of the driver, wrapped in a `SqlError` or bare. */
export const reasonOf = (error: unknown): StorageReason => {
  const cause = error instanceof SqlError.SqlError ? error.cause : error
  if (Predicate.hasProperty(cause, "code") && typeof cause.code === "string") {
    const { code } = cause
    return byCode.find(([prefix]) => code.startsWith(prefix))?.[1] ?? "unknown"
  }
  return cause instanceof TypeError && cause.message.includes("connection is not open") ? "closed" : "unknown"
}
