/** What endpoints share: paths, queries, errors of reading and changing a session, and endpoints of one shape. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import { Schema, Struct } from "effect"
import { Undone, UndoOptions } from "@daybook/core/session/SessionOptions"
import { SnapshotUnavailable } from "@daybook/core/snapshot/SnapshotError"
import { SessionID } from "@daybook/log/domain/Identifiers"
import { ImportUnfinished } from "@daybook/log/domain/Imported"
import { InvalidInput } from "@daybook/log/domain/InvalidInput"
import { SessionBusy } from "@daybook/log/domain/SessionBusy"
import { AppendError, CursorAhead, EventUnreadable, LogUnavailable, SessionNotFound } from "@daybook/log/log/EventLog"
import { StoreError } from "@daybook/log/store/StoreError"
import { Prompting, Reading } from "../wire/Access.ts"
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

// Endpoints of the same shape: reading a session, changing it, and taking back its work.

type Path = `/sessions/:sessionID${string}`

export const reads = <const Name extends string, A, I>(name: Name, path: Path, found: Schema.Schema<A, I>) =>
  HttpApiEndpoint.get(name, path).setPath(bySession).addSuccess(found).addError(ReadFailure).middleware(Reading)

/** A reading endpoint with its own path and errors. */
export const gets = <const Name extends string, A, I, E, J>(
  name: Name,
  path: `/${string}`,
  found: Schema.Schema<A, I>,
  failure: Schema.Schema<E, J>
) => HttpApiEndpoint.get(name, path).addSuccess(found).addError(failure).middleware(Reading)

/** Changes a field of a session. Who may do it, and further errors, are added. */
export const changes = <const Name extends string, A, I>(name: Name, path: Path, payload: Schema.Schema<A, I>) =>
  HttpApiEndpoint.put(name, path).setPath(bySession).setPayload(strict(payload)).addError(ChangeFailure)

/** Has an effect on a session. Results, further errors, and who may do it, are added. */
export const acts = <const Name extends string>(name: Name, path: Path) =>
  HttpApiEndpoint.post(name, path).setPath(bySession).addError(ChangeFailure)

const restoring = failures(Schema.Union(SnapshotUnavailable, SessionBusy, EventUnreadable))

/** Takes back work of a session, or an undo. */
export const restores = <const Name extends string>(name: Name, path: Path) =>
  acts(name, path)
    .setPayload(strict(Schema.Struct(Struct.omit(UndoOptions.fields, "sessionID"))))
    .addSuccess(Undone)
    .addError(restoring)
    .middleware(Prompting)
