/**
 * A separate process that runs a consumer of the feed to the end of the log:
 *   consumerChild FILENAME KIND AT TARGET
 * KIND is `transaction` (the table `derived`) or `outside` (lines of positions in the file TARGET). At the call with the
 * number AT it applies the events, tells its parent, and waits to be killed before the cursor is stored.
 */
import { appendFileSync } from "node:fs"
import { Effect } from "effect"
import * as Consumer from "../../packages/log/src/consumer/Consumer.ts"
import * as Store from "../../packages/log/src/Store.ts"
import { derive } from "./Derived.ts"

const [, , filename = "", kind, at, target = ""] = process.argv
let calls = 0

const pausing = <E, R>(effect: Effect.Effect<unknown, E, R>) =>
  Effect.zipRight(
    effect,
    Effect.suspend(() => {
      if (++calls !== Number(at)) return Effect.void
      process.send?.("applied")
      return Effect.never
    })
  )

const options = { name: "derived", follow: false, batchSize: 3 } as const

const consumer =
  kind === "transaction"
    ? Consumer.runInTransaction({
        ...options,
        apply: (events) => pausing(Effect.forEach(events, ({ seq, sessionID }) => derive(sessionID, seq)))
      })
    : Consumer.run({
        ...options,
        apply: (events) =>
          pausing(Effect.sync(() => appendFileSync(target, events.map(({ position }) => `${position}\n`).join(""))))
      })

await Effect.runPromise(Effect.provide(consumer, Store.layer({ filename })))
process.exit(0)
