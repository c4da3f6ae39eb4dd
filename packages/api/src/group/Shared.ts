/** What the endpoints share: paths, queries, and the errors of reading and changing a session. */
import { Schema } from "effect"
import { SessionID } from "@daybook/log/domain/Identifiers"
import { ImportUnfinished } from "@daybook/log/domain/Imported"
import { InvalidInput } from "@daybook/log/domain/InvalidInput"
import { AppendError, CursorAhead, EventUnreadable, LogUnavailable, SessionNotFound } from "@daybook/log/log/EventLog"
import { StoreError } from "@daybook/log/store/StoreError"
import { Expired } from "../wire/Cursor.ts"
import { failures } from "../wire/Failure.ts"

export const bySession = Schema.Struct({ sessionID: SessionID })

/**
 * A body or a query. A server refuses fields that the schema does not have: a misspelt optional one would have no effect. A client
 * leaves them out: its arguments are checked by the compiler, and may have more fields, as those of the facade.
 */
export const strict = <A, I>(schema: Schema.Schema<A, I>): Schema.Schema<A, I> =>
  Schema.compose(schema.annotations({ parseOptions: { onExcessProperty: "error" } }), Schema.typeSchema(schema))

/** An optional number of a query. */
export const count = Schema.optional(Schema.NumberFromString)

/** An optional text of a query. */
export const text = Schema.optional(Schema.String)

/** An optional choice of a query: `1` for yes. */
export const flag = Schema.optional(Schema.Literal("0", "1"))

const reading = [SessionNotFound, ...StoreError.members] as const

/** Why a session is not read. */
export const ReadFailure = failures(Schema.Union(...reading))

const appending = [SessionNotFound, ...AppendError.members, ...StoreError.members] as const

/** Why nothing is appended to a session. */
export const AppendFailure = failures(Schema.Union(...appending))

/** Why a session is not changed. */
export const ChangeFailure = failures(Schema.Union(InvalidInput, ImportUnfinished, ...appending))

/** Why events of a session are not read. */
export const EventsFailure = failures(
  Schema.Union(SessionNotFound, CursorAhead, Expired, EventUnreadable, LogUnavailable)
)
