/**
 * Derives the ids of events from their places. An event that this database numbered stores no id: its id is `evt_`,
 * twelve hexadecimal digits of its time, eight of the database's identity, and ten of its position. So ids sort by time,
 * are unique over databases, and cost no bytes. A replayed event stores the id that it has in its own log. Spec: ST-25,
 * ST-26.
 */
import { EventID } from "../domain/Identifiers.ts"

/** The id of the event in the row `e`. The view `events` of the schema has the same expression. */
export const idColumn =
  "coalesce(e.id, printf('evt_%012x%s%010x', e.created, " +
  "(SELECT identity FROM log_identity WHERE one = 1), e.position)) AS id"

const place = /^evt_[0-9a-f]{20}([0-9a-f]{10})$/

/** The position that a derived id of any database ends in; undefined for other ids. */
export const positionIn = (id: string): number | undefined => {
  const digits = place.exec(id)?.[1]
  return digits === undefined ? undefined : parseInt(digits, 16)
}

/** Derives ids for one database. The events of an append share their time, so its digits are kept. */
export const make = (identity: string): ((created: number, position: number) => EventID) => {
  let [time, start] = [-1, ""]
  return (created, position) => {
    if (created !== time) {
      time = created
      start = `evt_${created.toString(16).padStart(12, "0")}${identity}`
    }
    return EventID.make(start + position.toString(16).padStart(10, "0"), { disableValidation: true })
  }
}
