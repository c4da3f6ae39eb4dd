/** What a refused append does to those that wait with it: nothing. */
import { assert, it } from "@effect/vitest"
import { Effect, Exit, Layer } from "effect"
import { describe } from "vitest"
import { draft } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import * as SqlHook from "../../packages/log/src/log/SqlHook.ts"
import { projectorContract } from "../log/contract/Projectors.ts"
import { admitted, begin, message, readAll, renamed, session } from "../support/Logs.ts"
import { lacks } from "../support/Parts.ts"
import { freshSchema, postgresLog, postgresLogAt } from "../support/Postgres.ts"

/** Refuses with what it finds in the transaction: the title that the append's own event set. */
const notTitled = (title: string) =>
  SqlHook.asking({
    query: (sessionID) => ({ text: "SELECT title FROM session WHERE id = ?", parameters: [sessionID] }),
    refusalOf: ([row]: ReadonlyArray<{ readonly title: string | null }>) => (row?.title === title ? "taken" : undefined)
  })

const orphan = () => draft("session.next.text.ended", { assistantMessageID: message(), textID: "t", text: "x" })

describe.skipIf(lacks("postgres"))("PostgreSQL", () => {
  projectorContract((options) =>
    Layer.unwrapScoped(Effect.map(freshSchema, (settings) => postgresLogAt(settings, options)))
  )

  it.layer(postgresLog)("refusals", (it) => {
    it.effect(
      "PG-5, LG-21: of appends that wait together each refused one fails alone, and the others are stored",
      () =>
        Effect.gen(function* () {
          const log = yield* EventLog
          const ids = Array.from({ length: 40 }, () => session())
          yield* Effect.forEach(ids, (id) => begin(id), { concurrency: "unbounded" })
          const append = (id: (typeof ids)[number], index: number) => {
            if (index % 10 === 3) return log.append(id, [orphan()])
            if (index % 10 === 7) return log.append(id, [renamed("no")], { commit: notTitled("no") })
            return index % 10 === 9
              ? log.append(id, [renamed("late")], { expectedSeq: 7 })
              : log.append(id, [renamed("yes")], { commit: notTitled("no") })
          }
          for (let round = 0; round < 3; round += 1) {
            const exits = yield* Effect.forEach(ids, (id, index) => Effect.exit(append(id, index)), {
              concurrency: "unbounded"
            })
            assert.deepStrictEqual(
              exits.map(Exit.isSuccess),
              ids.map((_, index) => ![3, 7, 9].includes(index % 10))
            )
          }
          for (const [index, id] of ids.entries()) {
            const events = yield* readAll(id)
            assert.lengthOf(events, [3, 7, 9].includes(index % 10) ? 1 : 4)
            assert.deepStrictEqual(
              events.map(({ seq }) => seq),
              Array.from(events, (_, seq) => seq)
            )
          }
        })
    )

    it.effect("PG-5, LG-2: a name of an event that only a refused append brought is known to no later one", () =>
      Effect.gen(function* () {
        const [log, id, other] = [yield* EventLog, session(), session()]
        yield* begin(id)
        yield* begin(other)
        const admission = admitted(message())
        const refused = yield* Effect.exit(log.append(id, [admission, renamed("no")], { commit: notTitled("no") }))
        assert.isTrue(Exit.isFailure(refused))
        yield* log.append(other, [draft("session.next.synthetic", { messageID: message(), text: "note" })])
        yield* log.append(id, [admission])
        assert.deepStrictEqual(
          (yield* readAll(id)).map(({ type }) => type),
          ["session.created", "session.next.prompt.admitted"]
        )
        assert.deepStrictEqual(
          (yield* readAll(other)).map(({ type }) => type),
          ["session.created", "session.next.synthetic"]
        )
      })
    )

    it.effect("PG-6: a hook that runs statements by itself is a defect, and stores nothing", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, session()]
        yield* begin(id)
        const exit = yield* Effect.exit(log.append(id, [renamed("x")], { commit: SqlHook.check(() => "no") }))
        assert.isTrue(Exit.isFailure(exit) && exit.cause._tag === "Die")
        assert.strictEqual(yield* log.latest(id), 0)
        yield* log.append(id, [renamed("y")])
      })
    )
  })
})
