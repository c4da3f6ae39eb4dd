/**
 * Method: an append that finds the database locked holds the writer while others gather behind it, so that they are one
 * batch; the connection counts what that batch costs in statements and transactions. Refused appends come in every kind, beside healthy ones.
 */
import { assert, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Queue, Stream, TestClock } from "effect"
import type { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { type Draft, draft } from "../../packages/log/src/events/SessionEvents.ts"
import type { Projector } from "../../packages/log/src/log/Appends.ts"
import { type AppendOptions, EventLog, EventRefused } from "../../packages/log/src/log/EventLog.ts"
import * as SqlHook from "../../packages/log/src/log/SqlHook.ts"
import { temporaryDatabase } from "../support/Database.ts"
import { Faults, faultyLog } from "../support/FaultySql.ts"
import { heldAppend, rounds } from "../support/Holding.ts"
import { admitted, begin, created, message, readAll, renamed, session } from "../support/Logs.ts"

type Append = {
  readonly id: SessionID
  readonly draft: Draft
  readonly options?: AppendOptions<string>
}

/** A read model that wants no session with this title. */
const picky: Projector = {
  name: "picky",
  project: (events) => {
    const unwanted = events.find((event) => event.type === "session.next.renamed" && event.data.title === "unwanted")
    const broken = events.find((event) => event.type === "session.next.renamed" && event.data.title === "broken")
    if (broken !== undefined) return Effect.die(new Error("the projector is broken"))
    return unwanted === undefined
      ? Effect.void
      : new EventRefused({ sessionID: unwanted.sessionID, table: "picky", details: "unwanted" })
  }
}

const counted = Layer.unwrapScoped(
  Effect.map(temporaryDatabase, (filename) => faultyLog(filename, { projectors: [picky] }))
)

/** Makes one batch of the appends; gives their outcomes and the statements that it took. */
const oneBatch = Effect.fnUntraced(function* (appends: ReadonlyArray<Append>) {
  const [log, faults, gateSession] = [yield* EventLog, yield* Faults, session()]
  const { appending: held, open } = yield* heldAppend(gateSession, [created])
  const waiting = yield* Effect.forEach(appends, ({ draft, id, options }) =>
    Effect.fork(Effect.exit(log.append(id, [draft], options)))
  )
  yield* rounds
  const before = faults.ran.length
  yield* open
  yield* TestClock.adjust("1 second")
  yield* Fiber.join(held)
  const outcomes = yield* Effect.forEach(waiting, Fiber.join)
  const ran = faults.ran.slice(before)
  // The held append's own commit comes first.
  ran.splice(0, ran.indexOf("COMMIT") + 1)
  return { outcomes, ran }
})

const count = (ran: ReadonlyArray<string>, start: string) => ran.filter((text) => text.startsWith(start)).length

const healthy = (ids: ReadonlyArray<SessionID>): ReadonlyArray<Append> =>
  ids.map((id) => ({ id, draft: renamed("healthy") }))

const sessions = Effect.fnUntraced(function* (many: number) {
  const ids = Array.from({ length: many }, () => session())
  yield* Effect.forEach(ids, (id) => begin(id))
  return ids
})

/** Every way in which an append can be refused for a reason of its own. */
const kinds: Record<string, Effect.Effect<Append, unknown, EventLog>> = {
  "its hook fails": Effect.map(sessions(1), ([id = session()]) => ({
    id,
    draft: admitted(message()),
    options: { commit: SqlHook.check(() => "full") }
  })),
  "its hook dies": Effect.map(sessions(1), ([id = session()]) => ({
    id,
    draft: renamed("x"),
    options: {
      commit: SqlHook.check(() => {
        throw new Error("broken")
      })
    }
  })),
  "its session is not there": Effect.sync(() => ({ id: session(), draft: renamed("x") })),
  "its session is there already": Effect.map(sessions(1), ([id = session()]) => ({ id, draft: created })),
  "its part is not there": Effect.map(sessions(1), ([id = session()]) => ({
    id,
    draft: draft("session.next.text.ended", { assistantMessageID: message(), textID: "t", text: "x" })
  })),
  "its message's id is taken": Effect.gen(function* () {
    const [log, [one = session(), two = session()], taken] = [yield* EventLog, yield* sessions(2), message()]
    yield* log.append(one, [admitted(taken)])
    return { id: two, draft: admitted(taken) }
  }),
  "a projector refuses it": Effect.map(sessions(1), ([id = session()]) => ({ id, draft: renamed("unwanted") })),
  "a projector dies of it": Effect.map(sessions(1), ([id = session()]) => ({ id, draft: renamed("broken") }))
}

it.layer(counted)("refusals", (it) => {
  for (const [kind, make] of Object.entries(kinds)) {
    it.effect(`LG-21: an append that is refused because ${kind} leaves its batch; the others share one commit`, () =>
      Effect.gen(function* () {
        const [log, ids, bad] = [yield* EventLog, yield* sessions(15), yield* make]
        const before = yield* log.latest(bad.id)
        const { outcomes, ran } = yield* oneBatch([...healthy(ids.slice(0, 6)), bad, ...healthy(ids.slice(6))])
        assert.deepStrictEqual(
          outcomes.map(Exit.isSuccess),
          outcomes.map((_, index) => index !== 6)
        )
        assert.strictEqual(yield* log.latest(bad.id), before)
        for (const id of ids) assert.strictEqual(yield* log.latest(id), 1)
        // One attempt that is rolled back, and one commit: nobody pays an fsync for a neighbour.
        assert.strictEqual(count(ran, "BEGIN"), 2)
        assert.strictEqual(count(ran, "COMMIT"), 1)
      })
    )
  }

  it.effect("LG-21: a session that is refused again costs its neighbours neither a transaction nor a statement", () =>
    Effect.gen(function* () {
      const [ids, [full = session(), other = session()]] = [yield* sessions(16), yield* sessions(2)]
      const refused = (id: SessionID): Append => ({
        id,
        draft: admitted(message()),
        options: { commit: SqlHook.check(() => "full") }
      })
      const ours = (ran: ReadonlyArray<string>) => ran.filter((text) => text.startsWith("INSERT INTO event ")).length
      const alone = yield* oneBatch(healthy(ids))
      yield* oneBatch([refused(full), refused(other), ...healthy(ids)])
      const beside = yield* oneBatch([refused(full), ...healthy(ids), refused(other)])
      assert.strictEqual(beside.outcomes.filter(Exit.isSuccess).length, ids.length)
      assert.strictEqual(count(beside.ran, "BEGIN"), 1)
      assert.strictEqual(count(beside.ran, "COMMIT"), 1)
      // Its own attempt each, which begins and ends with a savepoint.
      assert.strictEqual(ours(beside.ran), ours(alone.ran) + 2)
      assert.strictEqual(count(beside.ran, "SAVEPOINT"), 3)
    })
  )

  it.effect("LG-21: a session that was refused is written with the others again once it succeeds", () =>
    Effect.gen(function* () {
      const [ids, [id = session()]] = [yield* sessions(3), yield* sessions(1)]
      yield* oneBatch([{ id, draft: renamed("unwanted") }, ...healthy(ids)])
      yield* oneBatch([{ id, draft: renamed("good") }, ...healthy(ids)])
      const { outcomes, ran } = yield* oneBatch([{ id, draft: renamed("good") }, ...healthy(ids)])
      assert.isTrue(outcomes.every(Exit.isSuccess))
      assert.strictEqual(count(ran, "SAVEPOINT"), 0)
      assert.strictEqual(count(ran, "INSERT INTO event "), 1)
    })
  )

  it.effect("LG-6: a batch without refusals has no savepoint and one attempt", () =>
    Effect.gen(function* () {
      const { outcomes, ran } = yield* oneBatch(healthy(yield* sessions(64)))
      assert.isTrue(outcomes.every(Exit.isSuccess))
      assert.strictEqual(count(ran, "BEGIN"), 1)
      assert.strictEqual(count(ran, "SAVEPOINT"), 0)
      assert.strictEqual(count(ran, "INSERT INTO event "), 1)
    })
  )

  it.effect("LG-21: half of a batch refused for ever leaves each neighbour its place, and every answer its own", () =>
    Effect.gen(function* () {
      const [log, good, bad] = [yield* EventLog, yield* sessions(32), yield* sessions(32)]
      for (let round = 1; round <= 3; round++) {
        const { outcomes, ran } = yield* oneBatch(
          good.flatMap((id, index) => [
            { id, draft: renamed(`round ${round}`) },
            {
              id: bad[index] ?? id,
              draft: renamed("x"),
              options: { commit: SqlHook.check(() => `refused ${index}`) }
            }
          ])
        )
        outcomes.forEach((outcome, index) => {
          if (index % 2 === 0) assert.isTrue(Exit.isSuccess(outcome))
          else assert.deepStrictEqual(outcome, Exit.fail(`refused ${index >> 1}`))
        })
        assert.strictEqual(count(ran, "COMMIT"), 1)
        // Known from the second round on: all healthy ones are one insert.
        if (round > 1) assert.strictEqual(count(ran, "SAVEPOINT"), 33)
      }
      for (const id of good) assert.strictEqual(yield* log.latest(id), 3)
      for (const id of bad) assert.strictEqual(yield* log.latest(id), 0)
    })
  )

  it.effect("LG-21: of two appends for the last place, in one batch, the first gets it", () =>
    Effect.gen(function* () {
      const [id = session()] = yield* sessions(1)
      const waiting =
        "SELECT 1 FROM session_input WHERE session = (SELECT session FROM event_sequence WHERE session_id = ?)"
      const commit = SqlHook.check((statements, id) => (statements.all(waiting, [id]).length > 1 ? "full" : undefined))
      const { outcomes } = yield* oneBatch([
        { id, draft: admitted(message()), options: { commit } },
        { id, draft: admitted(message()), options: { commit } }
      ])
      assert.deepStrictEqual(outcomes.map(Exit.isSuccess), [true, false])
      assert.strictEqual((yield* readAll(id)).length, 2)
    })
  )

  it.scoped("LG-11: the feed gives a batch in order at once, also what was written behind the others", () =>
    Effect.gen(function* () {
      const [log, [id = session(), last = session()], ids] = [yield* EventLog, yield* sessions(2), yield* sessions(4)]
      yield* oneBatch([{ id, draft: renamed("unwanted") }, ...healthy(ids)])
      const [{ position }] = yield* log.append(last, [renamed("start")])
      const feed = yield* log.feed({ after: position }).pipe(Stream.toQueueOfElements())
      yield* oneBatch([{ id, draft: renamed("good") }, ...healthy(ids)])
      const seen = yield* Effect.replicateEffect(Effect.flatten(Queue.take(feed)), 6)
      assert.deepStrictEqual(
        seen.map((event) => event.position),
        Array.from({ length: 6 }, (_, index) => position + 1 + index)
      )
      assert.strictEqual(seen.at(-1)?.sessionID, id)
    })
  )
})
