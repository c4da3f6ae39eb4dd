/** Measures what `daybook stats` shows, for the command and for a server. Spec: CL-194..CL-196, CL-281 in specs/cli.md. */
import { Clock, Effect, Stream } from "effect"
import * as Snapshots from "@daybook/core/snapshot/Snapshots"
import * as Upkeep from "@daybook/core/snapshot/Upkeep"
import { ConsumerStore } from "@daybook/log/consumer/ConsumerStore"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import type { Prunable, StatsReport } from "@daybook/log/domain/StoreStats"
import { stats } from "@daybook/log/maintenance/Stats"
import * as Retention from "@daybook/log/retention/Retention"
import * as Store from "@daybook/log/Store"
import { SessionStore } from "@daybook/log/store/SessionStore"
import { added, none } from "../render/PruneText.ts"

/** What to measure. */
interface Measuring {
  readonly database: string
  readonly sessionID: SessionID | undefined
  readonly exact: boolean
}

/** Plans a prune without a bound. It reads the row of every event, but no payload. */
const prunable = (filename: string, sessions: ReadonlyArray<SessionID> | undefined) =>
  Effect.gen(function* () {
    const holders = Retention.consumersOf(yield* ConsumerStore)
    const totals = yield* Stream.runFold(Retention.plan({ sessions, holders }), none, added)
    return { ...totals, frees: Retention.estimatedBytes(totals) } satisfies Prunable
  }).pipe(Effect.provide(Store.layerReading({ filename })))

/** What the session did. */
const metricsOf = (filename: string, sessionID: SessionID) =>
  Effect.gen(function* () {
    return yield* (yield* SessionStore).metrics(sessionID, yield* Clock.currentTimeMillis)
  }).pipe(Effect.provide(Store.layerReading({ filename })))

/** Measures a database, or one session of it. */
export const measure = Effect.fn("StatsMeasure.measure")(function* (what: Measuring) {
  const { database, sessionID } = what
  const measured = yield* stats(what)
  const sessions = sessionID === undefined ? undefined : [sessionID]
  // Of a store that is sampled, a plan would read far more than the sample.
  const figures = measured.sampled ? measured : { ...measured, prune: yield* prunable(database, sessions) }
  return (
    sessionID === undefined
      ? { ...figures, snapshots: yield* Upkeep.measure(Snapshots.folderBeside(database)) }
      : { ...figures, metrics: yield* metricsOf(database, sessionID) }
  ) satisfies StatsReport
})
