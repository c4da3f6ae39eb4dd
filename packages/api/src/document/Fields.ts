/** What every field of the document means, from the tables beside it. Pure. Spec: HT-2 in specs/http.md. */
import { answerFields } from "./AnswerFields.ts"
import { bodyFields } from "./BodyFields.ts"
import { errorFields } from "./ErrorFields.ts"
import { eventFields } from "./EventFields.ts"
import { messageFields } from "./MessageFields.ts"

/** The tables. No key is in two of them. */
export const tables: ReadonlyArray<Readonly<Record<string, string>>> = [
  bodyFields,
  answerFields,
  messageFields,
  eventFields,
  errorFields
]

const texts: ReadonlyMap<string, string> = new Map(tables.flatMap((table) => Object.entries(table)))

/** The schemas that stand in others without their name, by the field that has them. */
const inlined: ReadonlyMap<string, string> = new Map([
  ["session", "Session"],
  ["message", "Message"]
])

/** The keys that a field may have in a table: the most exact one first. */
export const keysOf = (place: string, field: string): ReadonlyArray<string> => {
  const whole = inlined.get(place)
  return [`${place}.${field}`, ...(whole === undefined ? [] : [`${whole}.${field}`]), field]
}

/** What the field of a place means, if a table has it. */
export const textOf = (place: string, field: string): string | undefined =>
  keysOf(place, field)
    .map((key) => texts.get(key))
    .find((text) => text !== undefined)

/** The place of what a field holds: its name, or for the data of an event the event's type without `session.next.`. */
export const placeIn = (place: string, field: string): string =>
  field === "data" && place.startsWith("session.") ? place.replace(/^session\.(?:next\.)?/, "") : field

/** The place of an endpoint's answer: `create` has fields of its own in its body. */
export const placeOfAnswer = (endpoint: string): string => (endpoint === "create" ? "Session" : endpoint)
