/** The fold, its two writers and the rebuild: whatever the log, all come to the same rows. */
import { SqlClient } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import { Effect, Either, FastCheck as fc } from "effect"
import type { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { type Draft, draft, type SessionEvent } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import * as Change from "../../packages/log/src/projection/Change.ts"
import * as MemoryTables from "../../packages/log/src/projection/MemoryTables.ts"
import { project } from "../../packages/log/src/projection/Projection.ts"
import { type TableName, tableNames } from "../../packages/log/src/projection/Tables.ts"
import { cases, forAll } from "../support/Cases.ts"
import { fileLog, memoryLog } from "../support/Database.ts"
import { admitted, created, message, projected, readAll, renamed, session, unique } from "../support/Logs.ts"
import { cut, plausibleLog } from "../support/PlausibleLogs.ts"
import { rebuilding } from "./contract/Rebuilding.ts"

const order: Record<TableName, string> = {
  session: "id",
  session_input: "admitted_seq",
  session_message: "seq",
  session_part: "seq",
  session_instruction: "seq",
  session_leaf: "seq",
  session_label: "seq"
}

/** A session's projected rows as the database holds them. */
const stored = Effect.fnUntraced(function* (id: SessionID) {
  const rows = yield* Effect.forEach(tableNames, (table) =>
    projected(table, `WHERE ${table === "session" ? "id" : "session_id"} = ? ORDER BY ${order[table]}`, [id])
  )
  return Object.fromEntries(tableNames.map((table, index) => [table, rows[index] ?? []]))
})

const sorted = (memory: MemoryTables.MemoryTables) =>
  Object.fromEntries(
    tableNames.map((table) => {
      const rows = memory.rows(table) as unknown as ReadonlyArray<Change.AnyRow>
      return [table, [...rows].sort((a, b) => Number(a[order[table]]) - Number(b[order[table]]))]
    })
  )

/** The same rows from the fold in memory, the events one by one. */
const folded = (events: ReadonlyArray<SessionEvent>) => {
  const memory = MemoryTables.make()
  for (const event of events) Either.getOrThrow(memory.apply(project(event)))
  return sorted(memory)
}

/** Events as a log would store them, without a log. */
const asEvents = (drafts: ReadonlyArray<Draft>): ReadonlyArray<SessionEvent> =>
  drafts.map(
    ({ data, type }, seq) =>
      ({
        position: seq + 1,
        seq,
        id: `evt_${seq}`,
        sessionID: "ses_fold",
        version: 1,
        created: seq * 10,
        type,
        data: JSON.parse(JSON.stringify(data))
      }) as SessionEvent
  )

const lengths = fc.array(fc.nat(8), { minLength: 1, maxLength: 6 })
const log = fc.tuple(fc.constant(null), plausibleLog("p"))

it.effect("PJ-11, PJ-3: applying joined changes equals applying each, wherever the log is cut", () =>
  Effect.sync(() =>
    forAll([log, lengths], 80, ([, drafts], runs) => {
      const [first, ...rest] = asEvents(drafts)
      const memory = MemoryTables.make()
      if (first === undefined) return
      for (const run of cut([first, ...rest], runs)) Either.getOrThrow(memory.apply(run.flatMap(project)))
      assert.deepStrictEqual(sorted(memory), folded([first, ...rest]))
    })
  )
)

it("PJ-11, PJ-3: sums of fractions come to the same whether added one by one or joined", () => {
  const assistants = Array.from({ length: 40 }, () => message())
  const steps = assistants.flatMap((assistantMessageID, n) => [
    draft("session.next.step.started", { assistantMessageID, agent: "a", model: { providerID: "p", id: "m" } }),
    draft("session.next.step.ended", {
      assistantMessageID,
      finish: "stop",
      cost: 0.1 * (n + 1),
      tokens: { input: 1, output: 1, reasoning: 0, cache: { read: 0, write: 0 } }
    })
  ])
  const events = asEvents([created, ...steps])
  const memory = MemoryTables.make()
  Either.getOrThrow(memory.apply(events.slice(0, 1).flatMap(project)))
  Either.getOrThrow(memory.apply(events.slice(1).flatMap(project)))
  assert.deepStrictEqual(sorted(memory), folded(events))
})

it("PJ-11, PJ-3: an update that comes before its insert is refused, joined or not", () => {
  const [assistantMessageID, textID] = [message(), "t"]
  const events = asEvents([
    created,
    draft("session.next.text.ended", { assistantMessageID, textID, text: "x" }),
    draft("session.next.text.started", { assistantMessageID, textID })
  ])
  assert.isTrue(Either.isLeft(Change.join(events.flatMap(project))))
  assert.isTrue(Either.isLeft(MemoryTables.make().apply(events.flatMap(project))))
})

it("PJ-4: the memory tables take all changes of an append or none", () => {
  const memory = MemoryTables.make()
  const [input, synthetic] = [message(), message()]
  const before = asEvents([
    created,
    admitted(input),
    draft("session.next.synthetic", { messageID: synthetic, text: "" })
  ])
  Either.getOrThrow(memory.apply(before.flatMap(project)))
  const rows = JSON.stringify(sorted(memory))
  const refusals = [
    [renamed("kept?"), admitted(input)],
    [renamed("kept?"), admitted(synthetic)],
    [renamed("kept?"), draft("session.next.synthetic", { messageID: input, text: "" })],
    [renamed("kept?"), draft("session.next.shell.ended", { callID: "none", output: "" })]
  ]
  for (const drafts of refusals) {
    const events = asEvents([...before.map(() => created), ...drafts]).slice(before.length)
    assert.isTrue(Either.isLeft(memory.apply(events.flatMap(project))))
    assert.strictEqual(JSON.stringify(sorted(memory)), rows)
  }
})

const at = (name: string) =>
  draft("session.next.addressed", {
    address: { scope: "private", uid: 1, kind: "agent", name: "a", session: name },
    root: `/root of ${name}`
  })

it("PJ-4: the memory tables refuse an address that another session has, and let a removed one's go", () => {
  const memory = MemoryTables.make()
  const of = (sessionID: string, ...drafts: ReadonlyArray<Draft>) =>
    asEvents(drafts).flatMap((event) => project({ ...event, sessionID } as SessionEvent))
  Either.getOrThrow(memory.apply(of("ses_a", created, at("one"))))
  assert.deepStrictEqual(
    memory.apply(of("ses_b", created, at("one"))),
    Either.left({ table: "session", details: "its address is taken" })
  )
  assert.strictEqual(memory.rows("session").length, 1)
  Either.getOrThrow(memory.apply(of("ses_b", created, at("two"))))
  assert.isTrue(Either.isLeft(memory.apply(of("ses_a", at("two")))))
  // Freed and taken, and given again as it is.
  Either.getOrThrow(memory.apply(of("ses_b", at("three"), at("three"))))
  Either.getOrThrow(memory.apply(of("ses_a", at("two"))))
  const loaded = MemoryTables.make()
  for (const row of memory.rows("session")) loaded.load("session", row)
  assert.isTrue(Either.isLeft(loaded.apply(of("ses_c", created, at("two")))))
})

it.layer(memoryLog)("projections in SQL", (it) => {
  it.effect("PJ-4: an append that takes an address, or an input, is refused in SQL when it is in memory", () =>
    Effect.gen(function* () {
      const runtime = yield* Effect.runtime<EventLog | SqlClient.SqlClient>()
      const change = fc.record({
        session: fc.nat(3),
        name: fc.nat(4),
        input: fc.nat(3),
        do: fc.constantFrom("address", "address", "admit", "promote", "withdraw", "remove")
      })
      const property = fc.asyncProperty(fc.array(change, { maxLength: 40 }), (changes) =>
        Effect.gen(function* () {
          const log = yield* EventLog
          const [suffix, ids] = [unique(), Array.from({ length: 4 }, () => session())]
          const logs = new Map<SessionID, ReadonlyArray<SessionEvent>>()
          const input = (n: number) => message(`${n}-${suffix}`)
          for (const each of changes) {
            const id = ids[each.session] ?? session()
            if (each.do === "remove") {
              yield* log.remove(id)
              logs.delete(id)
              continue
            }
            const drafts: Record<string, Draft> = {
              address: at(`${each.name}-${suffix.slice(0, 8)}`),
              admit: admitted(input(each.input)),
              promote: draft("session.next.prompt.promoted", {
                messageID: input(each.input),
                prompt: { text: "hello" },
                timeCreated: 1
              }),
              withdraw: draft("session.next.prompt.withdrawn", { messageID: input(each.input) })
            }
            const wanted = [...(logs.has(id) ? [] : [created]), drafts[each.do] ?? created] as const
            const stored = yield* Effect.either(log.append(id, [wanted[0] ?? created, ...wanted.slice(1)]))
            const memory = MemoryTables.make()
            // In the order of positions: one session may take the address that another gave up.
            const inOrder = [...logs.values()].flat().sort((a, b) => a.position - b.position)
            for (const event of inOrder) Either.getOrThrow(memory.apply(project(event)))
            const before = logs.get(id) ?? []
            const next = asEvents([...before.map(() => created), ...wanted])
              .slice(before.length)
              .map((event) => ({ ...event, sessionID: id }) as SessionEvent)
            const refused = Either.isLeft(memory.apply(next.flatMap(project)))
            assert.strictEqual(Either.isLeft(stored), refused, JSON.stringify(each))
            if (Either.isRight(stored)) logs.set(id, [...before, ...stored.right])
            else assert.strictEqual(stored.left._tag, "EventRefused")
          }
          for (const id of ids) yield* log.remove(id)
        }).pipe(Effect.provide(runtime), Effect.runPromise)
      )
      yield* Effect.promise(() => fc.assert(property, { numRuns: cases(12) }))
    })
  )

  it.effect("PJ-4: the SQL tables equal the memory tables, row for row, for any plausible log cut anyhow", () =>
    Effect.gen(function* () {
      const runtime = yield* Effect.runtime<EventLog | SqlClient.SqlClient>()
      const property = fc.asyncProperty(
        fc.constant(null).chain(() => {
          const name = unique()
          return fc.tuple(fc.constant(name), plausibleLog(name))
        }),
        lengths,
        ([, drafts], runs) =>
          Effect.gen(function* () {
            const [log, id] = [yield* EventLog, session()]
            for (const run of cut(drafts, runs)) yield* log.append(id, run)
            assert.deepStrictEqual(yield* stored(id), folded(yield* readAll(id)))
            yield* log.remove(id)
          }).pipe(Effect.provide(runtime), Effect.runPromise)
      )
      yield* Effect.promise(() => fc.assert(property, { numRuns: cases(24) }))
    })
  )

  it.effect("PJ-4: text that is no proper Unicode, and text with NUL, is the same in both", () =>
    Effect.gen(function* () {
      const [log, id, assistantMessageID] = [yield* EventLog, session(), message()]
      const [odd, other] = ["a\uD800b\u0000c", "\uDC00\uD83D\uDE00"]
      yield* log.append(id, [
        created,
        renamed(odd),
        draft("session.next.tool.input.started", { assistantMessageID, callID: odd, name: other }),
        draft("session.next.tool.input.ended", { assistantMessageID, callID: odd, text: odd + other }),
        draft("session.next.text.started", { assistantMessageID, textID: other }),
        draft("session.next.text.ended", { assistantMessageID, textID: other, text: odd })
      ])
      assert.deepStrictEqual(yield* stored(id), folded(yield* readAll(id)))
    })
  )
})

it.layer(fileLog)("projections under group commit", (it) => {
  it.effect("PJ-4: sessions whose appends share commits come to the rows of their own folds", () =>
    Effect.gen(function* () {
      const runtime = yield* Effect.runtime<EventLog | SqlClient.SqlClient>()
      const several = fc.constant(null).chain(() => {
        const names = Array.from({ length: 5 }, unique)
        return fc.tuple(...names.map((name) => plausibleLog(name, 40)))
      })
      const property = fc.asyncProperty(several, lengths, (logs, runs) =>
        Effect.gen(function* () {
          const log = yield* EventLog
          const appended = logs.map((drafts) => ({ id: session(), drafts }))
          yield* Effect.forEach(
            appended,
            ({ drafts, id }) => Effect.forEach(cut(drafts, runs), (run) => log.append(id, run), { discard: true }),
            { concurrency: "unbounded", discard: true }
          )
          for (const { id } of appended) {
            assert.deepStrictEqual(yield* stored(id), folded(yield* readAll(id)))
            yield* log.remove(id)
          }
        }).pipe(Effect.provide(runtime), Effect.runPromise)
      )
      yield* Effect.promise(() => fc.assert(property, { numRuns: cases(6) }))
    })
  )
})

rebuilding(memoryLog)
