/** The errors of an import. Spec: IM-40 to IM-44. */
import { Schema } from "effect"
import { SessionID } from "@daybook/log/domain/Identifiers"

/** The source has no head, or is empty. Nothing was stored. */
export class NoHead extends Schema.TaggedError<NoHead>("@daybook/formats/NoHead")("NoHead", {
  details: Schema.String
}) {
  override get message() {
    return `not a session log: ${this.details}`
  }
}

/** The source is not the one that the session was imported from. Nothing was stored. */
export class SourceDiffers extends Schema.TaggedError<SourceDiffers>("@daybook/formats/SourceDiffers")(
  "SourceDiffers",
  {
    sessionID: SessionID,
    /** Imported records. */
    records: Schema.Int,
    details: Schema.String
  }
) {
  override get message() {
    return `${this.sessionID} was imported from another state of this log: ${this.details}; import it as a new session, or remove that one first`
  }
}

/** The session has events that the import did not write, so new records of the source cannot follow. */
export class SessionContinued extends Schema.TaggedError<SessionContinued>("@daybook/formats/SessionContinued")(
  "SessionContinued",
  { sessionID: SessionID, records: Schema.Int }
) {
  override get message() {
    return (
      `${this.sessionID} was changed after ${this.records} records of this log were imported; ` +
      "import the log as a new session, or remove that one first"
    )
  }
}

/**
 * The session has other events than this import makes of the records that are stored: another import of the log is running,
 * or another release of Daybook imported them.
 */
export class ImportDiffers extends Schema.TaggedError<ImportDiffers>("@daybook/formats/ImportDiffers")(
  "ImportDiffers",
  { sessionID: SessionID, records: Schema.Int }
) {
  override get message() {
    return (
      `${this.sessionID} has other events than this import makes of the first ${this.records} records: another import of ` +
      "the log is running, or another release imported it; wait for that import, import the log as a new session, or " +
      "remove that one first"
    )
  }
}

/** Why an import failed, beside errors of the source and of the store. */
export const ImportError = Schema.Union(NoHead, SourceDiffers, SessionContinued, ImportDiffers)
export type ImportError = typeof ImportError.Type
