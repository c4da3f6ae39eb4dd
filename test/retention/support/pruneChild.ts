/**
 * A separate process that prunes every session of a database with archives, or puts archives back in the given order. It
 * reports each step to its parent, which kills it.
 */
import { Effect } from "effect"
import { atOnce } from "../../../packages/log/src/retention/Pace.ts"
import * as Retention from "../../../packages/log/src/retention/Retention.ts"
import { restore } from "../../../packages/log/src/retention/Retention.ts"
import * as Store from "../../../packages/log/src/Store.ts"

const [, , filename = "", folder = "", ...archives] = process.argv
const step = () => Effect.sync(() => void process.send?.("step"))

const pruning = Retention.run(
  { to: Number.MAX_SAFE_INTEGER, holders: Retention.noHolders },
  { pace: atOnce, archive: folder, starts: step, progress: step, pruned: step, freed: step }
)

const restoring = Effect.forEach(archives, (path) => restore(path, { pace: atOnce, progress: step }))

await Effect.runPromise(
  Effect.provide(archives.length === 0 ? Effect.asVoid(pruning) : Effect.asVoid(restoring), Store.layer({ filename }))
)
process.disconnect()
