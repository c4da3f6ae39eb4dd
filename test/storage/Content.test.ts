/** Events below the floor that rows still need: the blocks' codec, and reads that find an event in its block. */
import { brotliCompressSync, crc32 } from "node:zlib"
import { SqlClient } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import { Effect, Either, FastCheck as fc, Layer, Struct } from "effect"
import type { MessageID, SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { type Draft, draft } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import * as PrunedParts from "../../packages/log/src/retention/PrunedParts.ts"
import { insertBlocks, selectReferenced } from "../../packages/log/src/store/Content.ts"
import {
  blockBytes,
  bytesOf,
  type CheckedEvent,
  type KeptEvent,
  type KeptPart,
  makeDivider,
  pack,
  referencesOf,
  sumOf,
  unpack
} from "../../packages/log/src/store/ContentBlock.ts"
import { Inbox } from "../../packages/log/src/store/Inbox.ts"
import { SessionStore } from "../../packages/log/src/store/SessionStore.ts"
import { layerStore } from "../../packages/log/src/Store.ts"
import { cases } from "../support/Cases.ts"
import { memoryLog } from "../support/Database.ts"
import { admitted, begin, created, message, readAll, session, unique } from "../support/Logs.ts"
import { cut, plausibleLog } from "../support/PlausibleLogs.ts"

/** What the database returns: text without lone surrogates. */
const texts = fc.oneof(
  { weight: 8, arbitrary: fc.string() },
  { weight: 8, arbitrary: fc.string({ unit: "binary" }).map((text) => text.replace(/\p{Surrogate}/gu, "\uFFFD")) },
  { weight: 8, arbitrary: fc.lorem({ maxCount: 3000 }) },
  { weight: 1, arbitrary: fc.integer({ min: 400_000, max: 4_800_000 }).map((length) => "é".repeat(length >> 1)) }
)

const keptEvents: fc.Arbitrary<ReadonlyArray<CheckedEvent>> = fc
  .array(
    fc.record({
      step: fc.integer({ min: 1, max: 1000 }),
      type: fc.string(),
      created: fc.maxSafeNat(),
      id: fc.option(fc.string()),
      checksum: fc.nat(0xffffffff),
      data: texts
    }),
    { maxLength: 40 }
  )
  .map((events) => {
    let seq = -1
    return events.map(({ step, ...event }) => {
      seq += step
      return { ...event, seq, position: seq + 7 }
    })
  })

const reference = fc.option(fc.nat(1000))

/** Parts of some messages, each of which one of these events opened. */
const partsOf = (events: ReadonlyArray<KeptEvent>): fc.Arbitrary<ReadonlyArray<KeptPart>> => {
  const part = fc.record({
    kind: fc.constantFrom("text", "tool", "shell"),
    key: fc.string(),
    after: fc.nat(50),
    name: fc.option(fc.string()),
    status: fc.string(),
    opened: reference,
    raw: reference,
    called: reference,
    progress: reference,
    settled: reference,
    time_created: fc.maxSafeNat()
  })
  return fc
    .tuple(...events.map(() => fc.array(part, { maxLength: 3 })))
    .map((some) =>
      events.flatMap(({ seq }, index) =>
        (some[index] ?? []).map(({ after, ...rest }) => ({ ...rest, message: seq, seq: seq + after }))
      )
    )
}

const kept = keptEvents.chain((events) => fc.record({ events: fc.constant(events), parts: partsOf(events) }))

const withoutChecksums = (events: ReadonlyArray<CheckedEvent>): ReadonlyArray<KeptEvent> =>
  events.map((event) => Struct.omit(event, "checksum"))

/** The contents of blocks, if the events and their parts come in two pages. */
const divide = (events: ReadonlyArray<CheckedEvent>, parts: ReadonlyArray<KeptPart> = []) => {
  const divider = makeDivider()
  const half = events.length >> 1
  const isLate = ({ message }: KeptPart) => message >= (events[half]?.seq ?? 0)
  const [early, late] = [parts.filter((part) => !isLate(part)), parts.filter(isLate)]
  return [...divider.add(events.slice(0, half), early), ...divider.add(events.slice(half), late), ...divider.rest()]
}

it.effect.prop(
  "ST-33: events and parts come out of their blocks as they went in, in blocks that follow each other and are bounded",
  [kept],
  ([{ events, parts }]) =>
    Effect.gen(function* () {
      const divided = divide(events, parts)
      const blocks = yield* Effect.forEach(divided, pack)
      const unpacked = yield* Effect.forEach(blocks, ({ packed }) => Effect.orDie(Effect.flatten(unpack(packed))))
      assert.deepStrictEqual(
        unpacked.flatMap((block) => block.events()),
        withoutChecksums(events)
      )
      assert.deepStrictEqual(
        unpacked.map(({ sum }) => sum),
        divided.map((held) => sumOf(held.events.map(({ checksum }) => checksum)))
      )
      assert.deepStrictEqual(
        unpacked.flatMap((block) => block.parts()),
        parts
      )
      for (const [index, { events: held, parts: own }] of divided.entries()) {
        const opened = new Set(held.map(({ seq }) => seq))
        assert.isTrue(own.every(({ message }) => opened.has(message)))
        assert.deepStrictEqual([blocks[index]?.first, blocks[index]?.last], [held[0].seq, held.at(-1)?.seq])
        const bytes = held.reduce((total, event) => total + bytesOf(event), 0)
        assert.isTrue(bytes <= blockBytes || held.length === 1)
        // Two neighbours would not fit into one block.
        const next = divided[index + 1]?.events[0]
        if (next !== undefined) assert.isAbove(bytes + bytesOf(next), blockBytes)
      }
    }),
  { fastCheck: { numRuns: cases(40) } }
)

it.effect.prop(
  "ST-36: of a block only the events and parts that are asked for are made",
  [kept, fc.nat(40_000)],
  ([{ events, parts }, bound]) =>
    Effect.gen(function* () {
      const isWanted = (seq: number) => seq % 3 === 0 || seq > bound
      for (const held of divide(events, parts)) {
        const { packed } = yield* pack(held)
        const block = yield* Effect.flatten(unpack(packed))
        assert.deepStrictEqual(block.events(isWanted), withoutChecksums(held.events.filter(({ seq }) => isWanted(seq))))
        assert.deepStrictEqual(
          block.parts(isWanted),
          held.parts.filter(({ message }) => isWanted(message))
        )
      }
    }),
  { fastCheck: { numRuns: cases(20) } }
)

/** Runs an effect, and says whether it ended before the event loop went on. */
const atOnce = async <A>(effect: Effect.Effect<A>) => {
  let ended = false
  const running = Effect.runPromise(Effect.tap(effect, () => Effect.sync(() => (ended = true))))
  for (let turn = 0; turn < 1000; turn++) await Promise.resolve()
  return [ended, await running] as const
}

it("ST-36: blocks are compressed and decompressed off the event loop", async () => {
  const event = { seq: 1, position: 1, type: "t", created: 0, id: null, checksum: 1, data: "{}" }
  const [packedAtOnce, { packed }] = await atOnce(pack({ events: [event], parts: [] }))
  const [unpackedAtOnce, block] = await atOnce(Effect.orDie(Effect.flatten(unpack(packed))))
  assert.deepStrictEqual(block.events(), withoutChecksums([event]))
  assert.deepStrictEqual([packedAtOnce, unpackedAtOnce], [false, false])
})

it.effect("ST-33: a damaged block has a reason, never other events", () =>
  Effect.gen(function* () {
    const event = { seq: 1, position: 1, type: "t", created: 0, id: null, checksum: 1, data: "x".repeat(500) }
    const { packed } = yield* pack({ events: [event], parts: [] })
    for (let at = 0; at < packed.length; at++) {
      const damaged = Uint8Array.from(packed)
      damaged[at] = (damaged[at] ?? 0) ^ 4
      assert.isTrue(Either.isLeft(yield* unpack(damaged)), `byte ${at}`)
    }
    for (const length of [0, 3, packed.length >> 1]) {
      assert.isTrue(Either.isLeft(yield* unpack(packed.subarray(0, length))), `${length} bytes`)
    }
  })
)

it.effect("ST-33: a block of another form has a reason, also if its checksum is right", () =>
  Effect.gen(function* () {
    const events = {
      types: ["t"],
      type: [0],
      seq: [1],
      position: [1],
      created: [0],
      id: [null],
      bytes: [2]
    }
    const parts = {
      message: [1],
      kind: ["text"],
      key: ["0"],
      seq: [1],
      name: [null],
      status: ["completed"],
      opened: [null],
      raw: [null],
      called: [null],
      progress: [null],
      settled: [2],
      time_created: [0]
    }
    const columns = { events, parts, sum: 1 }
    const block = (text: string) => {
      const compressed = brotliCompressSync(text)
      const checksum = Buffer.alloc(4)
      checksum.writeUInt32BE(crc32(compressed))
      return unpack(Buffer.concat([checksum, compressed]))
    }
    assert.isTrue(Either.isRight(yield* block(`${JSON.stringify(columns)}\n{}`)))
    const texts = [
      "",
      "{}\n{}",
      JSON.stringify(columns),
      `${JSON.stringify(columns)}\n{`,
      `${JSON.stringify(columns)}\n{}{}`,
      ...Object.keys(events).map(
        (column) => `${JSON.stringify({ ...columns, events: { ...events, [column]: [] } })}\n{}`
      ),
      ...Object.keys(parts).map((column) => `${JSON.stringify({ ...columns, parts: { ...parts, [column]: [] } })}\n{}`)
    ]
    for (const text of texts) assert.isTrue(Either.isLeft(yield* block(text)), text)
  })
)

/** Moves the events that rows refer to into blocks and deletes all events up to the floor, as retention does. */
const pruneTo = Effect.fnUntraced(function* (sessionID: SessionID, floor: number) {
  const sql = yield* SqlClient.SqlClient
  const [head] = yield* sql<{ readonly session: number; readonly floor: number }>`
    SELECT session, floor FROM event_sequence WHERE session_id = ${sessionID}`
  const from = head?.floor ?? -1
  const all = { from: -1, through: floor }
  const parts = (yield* PrunedParts.select(sql, sessionID, all)).flatMap(referencesOf)
  const referenced = [...(yield* selectReferenced(sql, sessionID, all)), ...parts].filter(
    (seq) => seq > from && seq <= floor
  )
  const events = yield* sql<CheckedEvent>`SELECT e.seq, e.position, t.name AS type, e.created, e.id, e.checksum, e.data
    FROM event e JOIN event_type t ON t.type = e.type
    WHERE e.session = ${head?.session ?? 0} AND e.seq IN (SELECT value FROM json_each(${JSON.stringify(referenced)}))
    ORDER BY e.seq`
  yield* insertBlocks(sql, sessionID, yield* Effect.forEach(divide(events), pack))
  yield* sql`DELETE FROM event WHERE session = ${head?.session ?? 0} AND seq <= ${floor}`
  yield* sql`UPDATE event_sequence SET floor = ${floor} WHERE session_id = ${sessionID}`
})

/** What the store shows of rows. */
const shown = Effect.fnUntraced(function* (sessionID: SessionID, inputs: ReadonlyArray<MessageID>) {
  const [store, inbox] = [yield* SessionStore, yield* Inbox]
  return {
    messages: yield* store.messages({ sessionID, limit: 500 }),
    context: yield* store.context(sessionID, -1),
    inputs: yield* Effect.forEach(inputs, inbox.get),
    waiting: yield* inbox.waiting(sessionID, { limit: 500 }),
    instructions: yield* store.instructionFiles(sessionID, 100),
    unsettled: yield* store.unsettledTools(sessionID),
    openStep: yield* store.openStep(sessionID),
    todos: yield* store.todos(sessionID)
  }
})

it.layer(Layer.provideMerge(layerStore, memoryLog))("content below the floor", (it) => {
  it.effect("ST-34: messages, inputs, contexts and lists read the same when events below a floor are in blocks", () =>
    Effect.gen(function* () {
      const runtime = yield* Effect.runtime<EventLog | SqlClient.SqlClient | SessionStore | Inbox>()
      const logs = fc.constant(null).chain(() => plausibleLog(unique(), 80))
      const property = fc.asyncProperty(logs, fc.nat(100), fc.nat(100), (drafts, one, other) =>
        Effect.gen(function* () {
          const [log, id] = [yield* EventLog, session()]
          for (const run of cut<Draft>(drafts, [5, 2])) yield* log.append(id, run)
          const events = yield* readAll(id)
          const inputs = events.flatMap(({ data, type }) =>
            type === "session.next.prompt.admitted" || type === "session.next.prompted" ? [data.messageID] : []
          )
          const read = Effect.either(shown(id, inputs))
          const before = yield* read
          for (const part of [one, other].toSorted((a, b) => a - b)) {
            const floor = Math.floor((events.length * part) / 101)
            yield* pruneTo(id, floor)
            assert.deepStrictEqual(yield* read, before)
          }
          yield* log.remove(id)
          assert.deepStrictEqual(yield* (yield* SqlClient.SqlClient)`SELECT * FROM content`, [])
        }).pipe(Effect.provide(runtime), Effect.runPromise)
      )
      yield* Effect.promise(() => fc.assert(property, { numRuns: cases(16) }))
    })
  )

  it.effect("ST-35: a search finds the prompts of a session whose events are in blocks, each on its own", () =>
    Effect.gen(function* () {
      const [log, store, id] = [yield* EventLog, yield* SessionStore, session()]
      yield* begin(id)
      yield* log.append(id, [admitted(message(), "a 50% share"), admitted(message(), 'quoted "words"\nhere')])
      yield* pruneTo(id, 2)
      const found = (search: string) => Effect.map(store.list({ search }), ({ items }) => items.map((one) => one.id))
      for (const search of ["50% SHARE", '"words"\nhere', "a 50"]) assert.deepStrictEqual(yield* found(search), [id])
      for (const search of ['share","quoted', "50_", "[", "\\n"]) assert.deepStrictEqual(yield* found(search), [])
    })
  )

  it.effect("ST-34: a message whose event is gone, or whose block is damaged, is named; the others are read", () =>
    Effect.gen(function* () {
      const [log, sql, store, id] = [yield* EventLog, yield* SqlClient.SqlClient, yield* SessionStore, session()]
      const [first, second] = [message(), message()]
      const note = (messageID: MessageID) => draft("session.next.synthetic", { messageID, text: "note" })
      yield* log.append(id, [created, note(first), note(second)])
      yield* pruneTo(id, 1)
      const details = Effect.map(Effect.flip(store.message(id, first)), (error) =>
        error._tag === "MessageUnreadable" ? error.details : error._tag
      )
      yield* sql`UPDATE content SET packed = ${new Uint8Array([1, 2, 3])}`
      assert.match(yield* details, /event 1 .*damaged/)
      yield* sql`DELETE FROM content`
      assert.match(yield* details, /event 1.* missing/)
      assert.deepInclude(yield* store.message(id, second), { id: second, text: "note" })
    })
  )
})
