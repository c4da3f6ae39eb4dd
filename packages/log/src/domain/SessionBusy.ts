/** Defines the error for a session that another process runs. */
import { Schema } from "effect"
import { ErrorClass } from "../support/ErrorClass.ts"
import { SessionID } from "./Identifiers.ts"

/** An owner id names its host and its process (`OwnerID.ts`). */
const described = (ownerID: string): string => {
  const [host, pid] = ownerID.split("/")
  return pid === undefined ? ownerID : `process ${pid} on ${host}`
}

/** Another living process owns the session. */
export class SessionBusy extends ErrorClass<SessionBusy>("log")("SessionBusy")(
  { sessionID: SessionID, ownerID: Schema.String },
  ({ ownerID, sessionID }) =>
    `${sessionID} is being worked on by ${described(ownerID)}; follow its events, or interrupt it first`
) {}
