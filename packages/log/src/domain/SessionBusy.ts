/** Defines the error for a session that another process runs. */
import { Schema } from "effect"
import { SessionID } from "./Identifiers.ts"

/** An owner id names its host and its process (`OwnerID.ts`). */
const described = (ownerID: string): string => {
  const [host, pid] = ownerID.split("/")
  return pid === undefined ? ownerID : `process ${pid} on ${host}`
}

/** Another living process owns the session. */
export class SessionBusy extends Schema.TaggedError<SessionBusy>("@daybook/log/SessionBusy")("SessionBusy", {
  sessionID: SessionID,
  ownerID: Schema.String
}) {
  override get message() {
    return `${this.sessionID} is being worked on by ${described(this.ownerID)}; follow its events, or interrupt it first`
  }
}
