/** Titles of sessions, and the errors for an address or a title that is not unique. Spec: AD-2..AD-4, IB-13 in specs/sessions.md. */
import { Schema } from "effect"
import { SessionID } from "./Identifiers.ts"

/** Another session has the address. */
export class AddressTaken extends Schema.TaggedError<AddressTaken>("@daybook/log/AddressTaken")("AddressTaken", {
  address: Schema.String
}) {
  override get message() {
    return `another session is kept at ${this.address}; choose another name`
  }
}

/** More than one session has the title. Lists at most ten, last used first. */
export class TitleAmbiguous extends Schema.TaggedError<TitleAmbiguous>("@daybook/log/TitleAmbiguous")(
  "TitleAmbiguous",
  { title: Schema.String, sessionIDs: Schema.Array(SessionID) }
) {
  override get message() {
    return (
      `more than one session is called ${JSON.stringify(this.title)}: ${this.sessionIDs.join(", ")}; ` +
      "use an id, and rename or remove the others to use the name again"
    )
  }
}

// Makes the title of a session from the text of a prompt. Pure. Spec: NM-3 in specs/sessions.md.

/** Characters of a title that is the beginning of a prompt. */
const longest = 60

/** The text on one line, without invisible characters. */
export const onOneLine = (text: string): string => text.replaceAll(/[\s\p{Z}\p{Cc}\p{Cf}\p{Surrogate}]+/gu, " ").trim()

/** The first characters of a text on one line, cut at a word; a longer first word is cut between two characters. */
export const shortened = (line: string): string => {
  const characters = Array.from(line)
  if (characters.length <= longest) return line
  const begin = characters.slice(0, longest).join("")
  if (characters[longest] === " ") return begin.trimEnd()
  const space = begin.lastIndexOf(" ")
  return space > 0 ? begin.slice(0, space) : begin
}

/** A prompt may be megabytes long; its beginning is enough. */
const readChars = 4_096

/** The first 60 characters of a prompt, cut at a word; undefined if it has no visible character at its beginning. */
export const titleOfPrompt = (text: string): string | undefined => {
  const title = shortened(onOneLine(text.slice(0, readChars)))
  return title === "" ? undefined : title
}
