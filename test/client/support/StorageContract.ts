/** What consumers need of a storage for their cursors. */
import { assert, layer as on } from "@effect/vitest"
import { Deferred, Effect, Fiber, type Scope } from "effect"
import * as Consumer from "../../../packages/client/src/Consumer.ts"
import { EventLog } from "../../../packages/log/src/log/EventLog.ts"
import { begin, readAll, renamed, session } from "../../contracts/Samples.ts"
import { layer as served } from "./ServedClient.ts"

/** The contract of the storage that `make` returns, each time a new one. */
export const storageContract = <E, E2>(name: string, make: Effect.Effect<Consumer.Storage<E>, E2, Scope.Scope>) =>
  on(served())(`consumers with cursors in ${name}`, (it) => {
    it.scoped("HT-67: a consumer goes on behind what it applied, and applies again what failed", () =>
      Effect.gen(function* () {
        const [log, id, storage] = [yield* EventLog, session(), yield* make]
        yield* begin(id, 20)
        const applied: Array<number> = []
        const consume = (until: number) =>
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
        const [id, storage] = [session(), yield* make]
        yield* begin(id, 3)
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

    it.scoped("HT-67: cursors of different names are apart, and the last one that was stored is kept", () =>
      Effect.gen(function* () {
        const storage = yield* make
        const names = ["", "a", "A", "a b", "ä'\"%", "../a", "a\u0000"]
        for (const each of names) yield* storage.store(each, `1 of ${each}`, undefined)
        for (const each of names) yield* storage.store(each, `2 of ${each}`, `1 of ${each}`)
        const kept = yield* Effect.forEach(names, storage.load)
        assert.deepEqual(
          kept,
          names.map((each) => `2 of ${each}`)
        )
        assert.isUndefined(yield* storage.load("another"))
      })
    )
  })
