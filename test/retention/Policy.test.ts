/** The contract `Policy.ts`, in memory, and bounds on the size of a file. */
import { SqlClient } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import { Effect, Layer, TestClock } from "effect"
import * as Space from "../../packages/log/src/retention/Space.ts"
import * as Store from "../../packages/log/src/Store.ts"
import { memoryLog } from "../support/Database.ts"
import { readAll, session } from "../support/Logs.ts"
import { begun } from "../support/Pruning.ts"
import { day, linesOf, policies, prunedLine } from "./contract/Policy.ts"

policies(memoryLog)

it.effect("RT-40, RT-41: it prunes by age, then by size, and reports a size that was not reached", () =>
  Effect.gen(function* () {
    const [old, used] = [session(), session()]
    yield* begun(old, 2)
    yield* TestClock.adjust("3 days")
    yield* begun(used, 3)
    yield* TestClock.adjust("1 second")
    const [first, second] = [(yield* readAll(old)).length, (yield* readAll(used)).length]
    const [byAge = "", bySize = "", warning = "", ...rest] = yield* linesOf({ keep: day, maxSize: 1 })
    assert.match(byAge, prunedLine(first))
    assert.match(bySize, prunedLine(second))
    assert.match(warning, /^WARN retention: the database has \d+ bytes, more than 1; nothing else may go$/)
    assert.deepStrictEqual(rest, [])
    const { pageSize, pages } = yield* Space.measure(yield* SqlClient.SqlClient)
    assert.include(warning, `has ${pages * pageSize} bytes`)
  }).pipe(Effect.provide(Layer.provideMerge(Store.layerStore, memoryLog)))
)
