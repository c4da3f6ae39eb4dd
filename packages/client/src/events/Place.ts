/** Positions of callers as texts of requests, and back. Pure. Spec: HT-41 in specs/http.md. */
import { Effect } from "effect"
import * as Cursor from "@daybook/api/wire/Cursor"
import { CursorAhead, type From } from "@daybook/log/log/EventLog"
import { UnexpectedAnswer } from "../connection/ClientError.ts"

/** The greatest number that a request can have: ahead of every log. Its negative is before every log. */
const most = 999_999_999_999_999

/** A number as a cursor; the log itself refuses one that is ahead of it. */
export const textOf = (after: number | undefined): string | undefined =>
  after === undefined
    ? undefined
    : String(Number.isNaN(after) ? most : Math.min(most, Math.max(-most, Math.floor(after))))

/** The query of a request that begins after a number. */
export const queryOf = ({
  after,
  incarnation
}: Pick<From, "after" | "incarnation">): Readonly<Record<string, string>> => {
  const text = textOf(after)
  return {
    ...(text === undefined ? {} : { after: text }),
    ...(incarnation === undefined ? {} : { incarnation: String(incarnation) })
  }
}

/** A number that is none of a log is refused as the caller gave it. */
export const asGiven =
  (after: number | undefined) =>
  <E>(error: E): E | CursorAhead =>
    error instanceof CursorAhead && after !== undefined
      ? new CursorAhead({ cursor: after, latest: error.latest })
      : error

/** The position and the life of a session in a cursor of the server. */
export const read = (text: string): Effect.Effect<{ position: number; incarnation: number }, UnexpectedAnswer> => {
  const cursor = Cursor.read(text)
  return cursor === undefined
    ? new UnexpectedAnswer({ details: "a cursor has another form" })
    : Effect.succeed({ position: cursor.position, incarnation: cursor.incarnation ?? 0 })
}
