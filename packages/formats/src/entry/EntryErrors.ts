/** The errors of reading an entry log. The file stays as it is. Spec: FM-10, FM-11 in specs/formats.md. */
import { Schema } from "effect"
import { Place } from "../conversation/Conversation.ts"

/** The first record is not the header of a session (LO-3). */
export class NotASession extends Schema.TaggedError<NotASession>("@daybook/formats/NotASession")("NotASession", {
  /** The first record; absent if the file has none. */
  place: Schema.optionalWith(Place, { exact: true })
}) {
  override get message() {
    const found = this.place === undefined ? "it has no records" : `line ${this.place.line} is not a session header`
    return `this file is not an entry log: ${found}`
  }
}

/** The log is of a later version than this release reads (MI-8). */
export class SessionVersionTooNew extends Schema.TaggedError<SessionVersionTooNew>(
  "@daybook/formats/SessionVersionTooNew"
)("SessionVersionTooNew", { found: Schema.Number, supported: Schema.Int }) {
  override get message() {
    return `the log has version ${this.found}; this release reads versions up to ${this.supported}: use a newer release`
  }
}

/** Another program wrote to the log while it was migrated. Nothing was changed. */
export class LogChanged extends Schema.TaggedError<LogChanged>("@daybook/formats/LogChanged")("LogChanged", {
  path: Schema.String
}) {
  override get message() {
    return `${this.path} was written to meanwhile; close the program that uses it, then try again`
  }
}

export const EntryError = Schema.Union(NotASession, SessionVersionTooNew)
export type EntryError = typeof EntryError.Type
