/**
 * Checks that a session is still at its runner's Location. The check runs in the write transaction that opens a turn,
 * so a move cannot happen between check and write. Spec: EX-D6 (TU-11).
 */
import * as SqlClient from "@effect/sql/SqlClient"
import type * as SqlError from "@effect/sql/SqlError"
import { Data, Effect, Schema } from "effect"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import { Location, locationKey } from "@daybook/log/domain/Values"

/** The session moved. Nothing was stored, and no further work starts here. */
export class LocationLeft extends Data.TaggedError("LocationLeft") {}

export type Fence = (sessionID: SessionID) => Effect.Effect<void, LocationLeft | SqlError.SqlError>

const decode = Schema.decodeUnknownOption(Schema.parseJson(Location))

/** A fence for this Location, over the write connection. */
export const make = (sql: SqlClient.SqlClient, here: Location): Fence =>
  Effect.fnUntraced(function* (sessionID) {
    const [row] = yield* sql<{ readonly location: string }>`SELECT location FROM session WHERE id = ${sessionID}`
    const stored = decode(row?.location)
    if (stored._tag === "None" || locationKey(stored.value) !== locationKey(here)) return yield* new LocationLeft()
  })
