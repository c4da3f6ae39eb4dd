/** What a caller of an entry log can do wrong. Nothing was changed. Spec: FM-89, FM-98, FM-127. */
import { Schema } from "effect"

/** No entry of the log has this id. */
export class EntryNotFound extends Schema.TaggedError<EntryNotFound>("@daybook/formats/EntryNotFound")(
  "EntryNotFound",
  { id: Schema.String }
) {
  override get message() {
    return `the session has no entry ${JSON.stringify(this.id)}`
  }
}

/** A title needs a character that can be seen. */
export class TitleEmpty extends Schema.TaggedError<TitleEmpty>("@daybook/formats/TitleEmpty")("TitleEmpty", {}) {
  override get message() {
    return "a title needs at least one visible character"
  }
}

/** The place that a log would get is taken. */
export class LogExists extends Schema.TaggedError<LogExists>("@daybook/formats/LogExists")("LogExists", {
  path: Schema.String
}) {
  override get message() {
    return `${this.path} exists already; it was not replaced`
  }
}
