/** Owners as rows name them: of processes that are gone, and of processes about which nothing can be known. */
import { SqlClient } from "@effect/sql"
import { Clock, Effect } from "effect"
import * as OwnerID from "../../packages/core/src/session/OwnerID.ts"
import * as Store from "../../packages/core/src/Store.ts"

/** An owner in a process of this machine that has ended: its process id is above the system's limit. */
export const goneOwner = OwnerID.make()
  .ownerID()
  .replace(/\/\d+\//, "/4194999/")

/** An owner on a machine of which nothing is known here. */
export const stranger = "elsewhere.example/1/boot:1:1/1/abc"

/** Gives every session of the file that has an owner another one. */
export const giveTo = (ownerID: string) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql`UPDATE event_sequence SET owner_id = ${ownerID} WHERE owner_id IS NOT NULL`
  )

/** The same in a file that no process has open. */
export const giveFileTo = (filename: string, ownerID: string) =>
  Effect.provide(giveTo(ownerID), Store.layer({ filename }))

/** What owners of the file do while they live: they renew, every second. */
export const renewing = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forever(
    Effect.delay(sql`UPDATE event_sequence SET lease_beat = lease_beat + 1 WHERE owner_id IS NOT NULL`, "1 second")
  )
)

/** As if the process were stopped: time passes, and none of its timers fires. */
export const withTimersStopped = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.clockWith((clock) =>
    Effect.withClock(
      effect,
      new Proxy<Clock.Clock>(clock, {
        get: (target, property) => (property === "sleep" ? () => Effect.never : Reflect.get(target, property))
      })
    )
  )

/** As if the wall clock of the process were wrong by so much. */
export const withWallClock =
  (offByMs: number) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    Effect.clockWith((clock) =>
      Effect.withClock(
        effect,
        new Proxy<Clock.Clock>(clock, {
          get: (target, property) =>
            property === "currentTimeMillis"
              ? Effect.map(target.currentTimeMillis, (now) => now + offByMs)
              : property === "unsafeCurrentTimeMillis"
                ? () => target.unsafeCurrentTimeMillis() + offByMs
                : Reflect.get(target, property)
        })
      )
    )
