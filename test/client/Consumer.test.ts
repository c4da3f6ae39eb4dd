/** Consumers over a client. */
import { join } from "node:path"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import * as Consumer from "../../packages/client/src/Consumer.ts"
import * as FileStorage from "../../packages/client/src/FileStorage.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { begin, readAll, renamed, session } from "../../packages/log/src/testing/Samples.ts"
import { temporaryFolder } from "../support/Harness.ts"
import { layer as served } from "./support/ServedClient.ts"

const fileStorage = (folder: string) => Effect.provide(FileStorage.make(folder), NodeFileSystem.layer)

layer(served())("consumers over a client", (it) => {
  it.scoped("HT-67: a consumer goes on behind what it applied, and applies again what failed", () =>
    Effect.gen(function* () {
      const [log, id] = [yield* EventLog, session()]
      yield* begin(id, 20)
      const folder = join(yield* temporaryFolder, "cursors")
      const applied: Array<number> = []
      const consume = (until: number) =>
        Effect.flatMap(fileStorage(folder), (storage) =>
          Consumer.run({
            name: "a/../b",
            sessionID: id,
            follow: false,
            storage,
            apply: (events) => {
              if (events.some(({ seq }) => seq > until)) return Effect.fail("full" as const)
              return Effect.sync(() => applied.push(...events.map(({ seq }) => seq)))
            }
          })
        )
      yield* consume(20)
      yield* log.append(id, [renamed("one more")])
      assert.strictEqual(yield* Effect.flip(consume(20)), "full")
      yield* consume(21)
      yield* consume(21)
      assert.deepEqual(
        applied,
        Array.from({ length: 22 }, (_, seq) => seq)
      )
    })
  )

  it.scoped("HT-67: a consumer that is interrupted while it applies delivers those events again", () =>
    Effect.gen(function* () {
      const id = session()
      yield* begin(id, 3)
      const storage = yield* fileStorage(yield* temporaryFolder)
      const begun = yield* Deferred.make<void>()
      const options = { name: "c", sessionID: id, follow: false, storage }
      const apply = () => Effect.zipRight(Deferred.succeed(begun, undefined), Effect.never)
      const first = yield* Effect.fork(Consumer.run({ ...options, apply }))
      yield* Deferred.await(begun)
      yield* Fiber.interrupt(first)
      assert.isUndefined(yield* storage.load("c"))
      const seen: Array<unknown> = []
      yield* Consumer.run({ ...options, apply: (events) => Effect.sync(() => seen.push(...events)) })
      assert.deepEqual(seen, [...(yield* readAll(id))])
      assert.match((yield* storage.load("c")) ?? "", /^d1\./)
    })
  )
})
