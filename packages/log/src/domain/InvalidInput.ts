/** Defines the error for an invalid argument of a caller. */
import { Schema } from "effect"

/** An argument is not valid: `field` names it, or is empty for the argument itself; `details` says what is expected. */
export class InvalidInput extends Schema.TaggedError<InvalidInput>("@daybook/log/InvalidInput")("InvalidInput", {
  field: Schema.String,
  details: Schema.String
}) {
  override get message() {
    return this.field === "" ? this.details : `${this.field}: ${this.details}`
  }
}
