/** Appends the events that open a turn, unless the session has left this Location. Spec: EX-D6, EX-D10 (TU-11). */
import { type Array as Arr, Effect } from "effect"
import { CurrentLocation } from "@daybook/log/domain/CurrentLocation"
import type { Draft } from "@daybook/log/events/SessionEvents"
import { EventLog } from "@daybook/log/log/EventLog"
import { SessionStore } from "@daybook/log/store/SessionStore"
import type { Owned } from "./Activity.ts"

export const make = Effect.gen(function* () {
  const log = yield* EventLog
  const fence = (yield* SessionStore).isAt(yield* CurrentLocation)

  const append = ({ owner, sessionID }: Owned, drafts: Arr.NonEmptyReadonlyArray<Draft>) =>
    log.append(sessionID, drafts, { owner, commit: fence })

  return { fence, append }
})

export type FencedAppend = Effect.Effect.Success<typeof make>
