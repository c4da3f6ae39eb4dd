/** Makes the class of a tagged error: its name in its package, its fields, and the sentence that people read. */
import { Schema } from "effect"

/**
 * The class of an error of a package. Without a sentence, the message is a field of that name, or lists the fields.
 *
 * @example
 * ```ts
 * class SessionBusy extends ErrorClass<SessionBusy>("log")("SessionBusy")(
 *   { sessionID: SessionID },
 *   ({ sessionID }) => `${sessionID} is busy`
 * ) {}
 * ```
 */
export const ErrorClass =
  <Self>(from: string) =>
  <Tag extends string>(tag: Tag) =>
  <Fields extends Schema.Struct.Fields>(fields: Fields, sentence?: (error: Schema.Struct.Type<Fields>) => string) => {
    const made = Schema.TaggedError<Self>(`@daybook/${from}/${tag}`)(tag, fields)
    if (sentence !== undefined) {
      const get = function (this: Schema.Struct.Type<Fields>) {
        return sentence(this)
      }
      Object.defineProperty(Object(made).prototype, "message", { get, configurable: true })
    }
    return made
  }
