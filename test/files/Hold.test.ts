/** What an exporter still needs of the log holds a prune back. Method: cuts are planned with the registered holders. */
import { rmSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { Exporter, layerHold } from "../../packages/files/src/Exporter.ts"
import { isGone } from "../../packages/files/src/record/LedgerFile.ts"
import { ConsumerStore } from "../../packages/log/src/consumer/ConsumerStore.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { consumersOf } from "../../packages/log/src/retention/Retention.ts"
import * as Store from "../../packages/log/src/Store.ts"
import { temporaryFolder } from "../support/Database.ts"
import { session } from "../support/Logs.ts"
import { begun, cutWithin, fill, turns } from "../support/Pruning.ts"

const one = session("one")

const withStore = <A, E, R>(use: (folder: string) => Effect.Effect<A, E, R>) =>
  Effect.flatMap(temporaryFolder, (folder) =>
    Effect.provide(use(folder), Store.layer({ filename: join(folder, "store.db") }))
  )

/** Exports the store to the root, and ends. */
const exported = (root: string) =>
  Effect.scoped(
    Effect.flatMap(
      Layer.build(Layer.fresh(Layer.provideMerge(layerHold(root), Exporter.layer({ root, uid: 7 })))),
      (context) => Context.get(context, Exporter).catchUp
    )
  )

/** The cut that the holders of the session allow. */
const allowed = Effect.gen(function* () {
  const holders = yield* consumersOf(yield* ConsumerStore)(one)
  return yield* cutWithin(one, {}, holders)
})

it.scoped("FI-124: a prune goes as far as the files of a root, also when no exporter runs", () =>
  withStore((folder) =>
    Effect.gen(function* () {
      const root = join(folder, "ctx")
      const log = yield* EventLog
      yield* begun(one, 2)
      const before = yield* log.latest(one)
      yield* exported(root)
      yield* fill(one, turns(2))
      const held = yield* allowed
      assert.strictEqual(held.to, before)
      assert.deepStrictEqual(held.held, [{ name: `files ${root}`, after: before }])
      yield* exported(root)
      const free = yield* allowed
      assert.strictEqual(free.to, yield* log.latest(one))
      assert.deepStrictEqual(free.held, [])
    })
  )
)

it.scoped("FI-124: a root that was removed holds nothing, and is forgotten by the next one", () =>
  withStore((folder) =>
    Effect.gen(function* () {
      const consumers = yield* ConsumerStore
      const names = Effect.map(consumers.list, (all) => all.map(({ name }) => name))
      const [gone, next] = [join(folder, "gone"), join(folder, "next")]
      yield* begun(one, 1)
      yield* exported(gone)
      assert.isFalse(yield* isGone(`files ${gone}`))
      rmSync(gone, { recursive: true })
      assert.isTrue(yield* isGone(`files ${gone}`))
      assert.isFalse(yield* isGone("another-consumer"))
      yield* exported(next)
      assert.deepStrictEqual(yield* names, [`files ${next}`])
    })
  )
)
