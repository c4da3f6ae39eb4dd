/**
 * Checks a session in the transaction of an append, where no other writer can change it before the append is stored.
 * Spec: EX-D6 in specs/execution.md, IB-13 in specs/sessions.md (TU-11).
 */
import { Option, Schema } from "effect"
import { SessionID } from "../domain/Identifiers.ts"
import { Location, locationKey } from "../domain/Values.ts"
import type { CommitHook } from "../log/EventLog.ts"
import * as SqlHook from "../log/SqlHook.ts"

/** The session is at another Location. Nothing was stored. */
export class LocationLeft extends Schema.TaggedError<LocationLeft>("@daybook/log/LocationLeft")("LocationLeft", {
  sessionID: SessionID
}) {
  override get message() {
    return `${this.sessionID} moved to another Location`
  }
}

/** Another session has the title. Nothing was stored. */
export class TitleTaken extends Schema.TaggedError<TitleTaken>("@daybook/log/TitleTaken")("TitleTaken", {
  title: Schema.String
}) {
  override get message() {
    return `another session has the title ${JSON.stringify(this.title)}`
  }
}

const decode = Schema.decodeUnknownOption(Schema.parseJson(Location))

/** Refuses the append unless its session is at the Location. */
export const isAt = (here: Location): CommitHook<LocationLeft> => {
  const key = locationKey(here)
  return SqlHook.onHead({
    value: "(SELECT location FROM session WHERE id = event_sequence.session_id)",
    refusalOf: (location, sessionID) => {
      const stored = decode(location)
      return Option.isSome(stored) && locationKey(stored.value) === key ? undefined : new LocationLeft({ sessionID })
    }
  })
}

/** Refuses the append if a session other than its own has the title. */
export const isOnlyOne = (title: string): CommitHook<TitleTaken> =>
  SqlHook.asking({
    query: (sessionID) => ({
      text: "SELECT 1 FROM session WHERE title = ? AND id <> ? LIMIT 1",
      parameters: [title, sessionID]
    }),
    refusalOf: (others) => (others.length === 0 ? undefined : new TitleTaken({ title }))
  })
