/** What nodes tell each other, over a real database. */
import { assert, it } from "@effect/vitest"
import { Context, Effect, Layer, Queue, Stream } from "effect"
import { describe } from "vitest"
import { Moves } from "../../packages/log/src/coordination/Moves.ts"
import * as Postgres from "../../packages/postgres/src/Postgres.ts"
import { lacks } from "../support/Parts.ts"
import { freshSchema } from "../support/Postgres.ts"
import { waitingFor } from "../support/Waiting.ts"

describe.skipIf(lacks("postgres"))("moves between nodes", () => {
  it.scopedLive("CU-39: what a node tells reaches the others, and nodes of another schema hear nothing", () =>
    Effect.gen(function* () {
      /** A node and what it hears, once it listens: then it takes a hint, because others may have been lost. */
      const node = Effect.fnUntraced(function* (settings: Postgres.Settings) {
        const context = yield* Layer.build(Postgres.layerConnections(settings))
        const { tell, told } = Context.get(context, Moves)
        const heard = yield* Queue.unbounded<void>()
        yield* Effect.forkScoped(Stream.runForEach(told, () => Queue.offer(heard, undefined)))
        yield* Effect.yieldNow()
        yield* Layer.build(Layer.provide(Postgres.layerLog(), Layer.succeedContext(context)))
        yield* waitingFor("a node to listen")(Queue.take(heard))
        return { tell, heard }
      })
      const settings = yield* freshSchema
      const [one, other, stranger] = [yield* node(settings), yield* node(settings), yield* node(yield* freshSchema)]
      yield* one.tell
      yield* waitingFor("the other node to hear")(Queue.take(other.heard))
      yield* waitingFor("the node itself to hear")(Queue.take(one.heard))
      assert.strictEqual(yield* Queue.size(stranger.heard), 0)
    })
  )
})
