/** Appends the events that open a turn, unless the session has left this Location. Spec: EX-D6 (TU-11). */
import * as SqlClient from "@effect/sql/SqlClient"
import { type Array as Arr, Effect } from "effect"
import { CurrentLocation } from "@daybook/log/domain/CurrentLocation"
import type { Draft } from "@daybook/log/events/SessionEvents"
import { EventLog } from "@daybook/log/log/EventLog"
import { unavailable } from "@daybook/log/log/EventRow"
import * as LocationFence from "../context/LocationFence.ts"
import type { Owned } from "./Activity.ts"

export const make = Effect.gen(function* () {
  const log = yield* EventLog
  const fence = LocationFence.make(yield* SqlClient.SqlClient, yield* CurrentLocation)
  const notChecked = unavailable("check the session's location")

  const append = ({ owner, sessionID }: Owned, drafts: Arr.NonEmptyReadonlyArray<Draft>) =>
    Effect.catchTag(log.append(sessionID, drafts, { owner, commit: () => fence(sessionID) }), "SqlError", (error) =>
      notChecked(error)
    )

  return { fence, append }
})

export type FencedAppend = Effect.Effect.Success<typeof make>
