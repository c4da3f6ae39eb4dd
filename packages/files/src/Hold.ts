/**
 * Keeps a prune from removing events that the files under a root do not have yet: a consumer in the database that
 * follows the exporter's position. It outlives the process, and ends with the root's record. Spec: FI-124 in specs/files.md.
 */
import { realpath } from "node:fs/promises"
import { Effect, Layer, Schedule } from "effect"
import { ConsumerStore } from "@daybook/log/consumer/ConsumerStore"
import type { LogUnavailable } from "@daybook/log/log/EventLog"
import { Exporter } from "./Exporter.ts"
import { RootUnusable } from "./layout/Errors.ts"
import { isGone, nameOf } from "./record/HoldName.ts"

/** How often the position is stored: each time is a commit. */
const every = "30 seconds"

/** Forgets the holds of removed roots. */
const forgetGone = Effect.fnUntraced(function* ({ list, remove }: typeof ConsumerStore.Service) {
  for (const { name } of yield* list) if (yield* isGone(name)) yield* remove(name)
})

const make = Effect.fn("Hold.make")(function* (root: string) {
  const [exporter, consumers] = [yield* Exporter, yield* ConsumerStore]
  yield* forgetGone(consumers)
  const real = yield* Effect.tryPromise({
    try: () => realpath(root),
    catch: (error) => new RootUnusable({ root, details: String(error) })
  })
  const claim = yield* Effect.catchTags(
    consumers.claim({ name: nameOf(real), sessionID: undefined, start: "beginning" }),
    // It follows the feed, and so does every hold.
    { ConsumerMismatch: Effect.die, SessionNotFound: Effect.die }
  )
  let stored = claim.place.cursor
  const store = Effect.gen(function* () {
    const position = yield* exporter.position
    // It goes back if the record was removed: the files are then compared with the whole log.
    if (position === stored) return
    yield* consumers.commit(claim, { ...claim.place, cursor: position }, Effect.void)
    stored = position
  }).pipe(
    Effect.catchAll((error) =>
      Effect.logWarning(
        `what the files under ${root} still need of the log is not known to retention: ${error.message}`
      )
    )
  )
  yield* Effect.addFinalizer(() => store)
  yield* Effect.forkScoped(Effect.repeat(store, Schedule.spaced(every)))
})

/** Holds events for the exporter of this root in the context, also while no exporter runs, until the root is removed. */
export const layer = (root: string): Layer.Layer<never, RootUnusable | LogUnavailable, Exporter | ConsumerStore> =>
  Layer.scopedDiscard(make(root))
