/** Defines the errors for a session's address or title that is not unique. Spec: AD-2..AD-4, IB-13 in specs/inbox.md. */
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
