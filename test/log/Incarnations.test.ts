/**
 * A session's id lives from creation to removal, and may live again. Method: one log in two layers, as two processes have
 * it, or in one; a session is removed and made again with as many events as before, more, or fewer, while tails stand at
 * every place in it. Nothing of one life may reach a reader of another.
 */
import { assert, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { caughtUp, isGone } from "../contracts/IncarnationContract.ts"
import { childProgram, startChild } from "../support/Child.ts"
import { logAt, temporaryDatabase } from "../support/Database.ts"
import { begin, renamed, session } from "../support/Logs.ts"

const two = Effect.gen(function* () {
  const filename = yield* temporaryDatabase
  const [ours, theirs] = [yield* Layer.build(logAt(filename)), yield* Layer.build(logAt(filename))]
  return { ours, theirs, here: Context.get(ours, EventLog), there: Context.get(theirs, EventLog), filename }
})

for (const more of [-2, 0, 3]) {
  it.scopedLive(
    `LG-23: a tail ends when another process removes its session and makes it again with ${more} more events, and this ` +
      "one appends to it",
    () =>
      Effect.gen(function* () {
        const { here, ours, there, theirs } = yield* two
        for (const length of [2, 5, 600]) {
          const id = session()
          yield* Effect.provide(begin(id, length), ours)
          const next = yield* caughtUp(here, id, length + 1)
          yield* there.remove(id)
          yield* Effect.provide(begin(id, length + more), theirs)
          // Kept for tails, in this process, at the place where the tail stands.
          yield* here.append(id, [renamed("of the new life")])
          isGone(yield* next, id)
        }
      })
  )
}

it.scopedLive("LG-23: a tail ends when a real process removes its session and makes it again with as many events", () =>
  Effect.gen(function* () {
    const [program, filename, id] = [yield* childProgram(), yield* temporaryDatabase, session()]
    yield* Effect.gen(function* () {
      const log = yield* EventLog
      yield* begin(id, 2)
      const next = yield* caughtUp(log, id, 3)
      const child = yield* startChild(program.outfile, filename)
      yield* child.tell({ do: "remake", sessionID: id, titles: ["a", "b"] })
      assert.deepStrictEqual(yield* child.answer, { is: "stored", seq: 2 })
      yield* log.append(id, [renamed("of the new life")])
      isGone(yield* next, id)
    }).pipe(Effect.provide(logAt(filename)))
  })
)
