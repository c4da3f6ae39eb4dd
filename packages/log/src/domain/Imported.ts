/** Defines what a session keeps of the foreign log that it was imported from. Spec: specs/formats.md. */
import { Schema } from "effect"
import { SessionID } from "./Identifiers.ts"
import { JsonValue } from "./Json.ts"
import { optional } from "../support/Optional.ts"

/** The part of a log's record that the session's events do not hold. */
export const ImportedRecord = Schema.Struct({
  /** The record's id in the log; absent for the log's head. */
  key: optional(Schema.NonEmptyString),
  /** What turns the record that an export makes of the events into the record of the log (IM-21). */
  difference: optional(JsonValue)
})
export type ImportedRecord = typeof ImportedRecord.Type

/** The log that a session was imported from, and how much of it. */
export const ImportedLog = Schema.Struct({
  /** The log's format: pi, xcsh, omp, thread, claude-code or codex. */
  dialect: Schema.NonEmptyString,
  /** The session's id in the tool that wrote the log. */
  id: Schema.NonEmptyString,
  /** The version of the format. */
  version: optional(Schema.Int),
  /** Imported records, without the head. */
  records: Schema.NonNegativeInt,
  /** SHA-256 of these records. A head may change, for example its title. */
  digest: Schema.NonEmptyString,
  /** The number of records at the end of the import that named the session by its first prompt (IM-13). */
  named: optional(Schema.NonNegativeInt),
  /** The numbers of records at the ends of complete imports, ascending: the log may have grown in between. */
  ends: Schema.Array(Schema.NonNegativeInt)
})
export type ImportedLog = typeof ImportedLog.Type

/** Whether the import came to the end of the log. */
export const isComplete = ({ ends, records }: ImportedLog): boolean => ends.at(-1) === records

/** The import of the session has not reached the end of its log, so it takes no prompt or change. Nothing changed (IM-23). */
export class ImportUnfinished extends Schema.TaggedError<ImportUnfinished>("@daybook/log/ImportUnfinished")(
  "ImportUnfinished",
  { sessionID: SessionID, records: Schema.Int }
) {
  override get message() {
    return (
      `the import of ${this.sessionID} has only ${this.records} records of its log: ` +
      "import the log again, then repeat the command"
    )
  }
}

/** The error of a session whose import has not come to the end of its log. */
export const unfinished = (sessionID: SessionID, imported: ImportedLog | undefined): ImportUnfinished | undefined =>
  imported === undefined || isComplete(imported)
    ? undefined
    : new ImportUnfinished({ sessionID, records: imported.records })
