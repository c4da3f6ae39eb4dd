/** Consumers of the feed whose next events were pruned. Spec: CN-12 and CN-20, and the recipe of RT-14. */
import { assert, it } from "@effect/vitest"
import { Effect, Layer, Schedule } from "effect"
import * as Consumer from "../../packages/log/src/consumer/Consumer.ts"
import type { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import type { Message } from "../../packages/log/src/domain/Message.ts"
import type { SessionEvent } from "../../packages/log/src/events/SessionEvents.ts"
import { type CursorExpired, EventLog } from "../../packages/log/src/log/EventLog.ts"
import * as Store from "../../packages/log/src/Store.ts"
import { SessionStore } from "../../packages/log/src/store/SessionStore.ts"
import { drain } from "../contracts/ConsumerContract.ts"
import { feedAll } from "../contracts/FeedContract.ts"
import { memoryLog } from "../support/Database.ts"
import { readAll, session, unique } from "../support/Logs.ts"
import { begun, interleaved, pruned } from "../support/Pruning.ts"

const store = Layer.provideMerge(Store.layerStore, memoryLog)

const statusOf = (name: string) => Effect.flatMap(Consumer.ConsumerStore, (consumers) => consumers.get(name))

/** The prompts of each session, as a consumer derives them from events and from snapshots. */
const makePrompts = () => {
  const prompts = new Map<string, Array<string>>()
  const of = (id: SessionID) => prompts.get(id) ?? prompts.set(id, []).get(id) ?? []

  const apply = (events: ReadonlyArray<SessionEvent>) =>
    Effect.sync(() => {
      for (const event of events) {
        if (event.type === "session.next.prompt.promoted") of(event.sessionID).push(event.data.prompt.text)
      }
    })

  const applyMessages = Effect.fnUntraced(function* (sessionID: SessionID, floor: number) {
    const { messages } = yield* SessionStore
    let cursor: number | undefined
    do {
      const page: Effect.Effect.Success<ReturnType<typeof messages>> = yield* messages({ sessionID, cursor, limit: 2 })
      const final = page.items.filter(({ seq }: Message) => seq <= floor)
      for (const message of final) if (message.type === "user") of(sessionID).push(message.text)
      cursor = final.length < page.items.length ? undefined : page.cursor
    } while (cursor !== undefined)
  })

  const fromSnapshot = Effect.fnUntraced(function* (error: CursorExpired) {
    const [log, sessions] = [yield* EventLog, yield* SessionStore]
    prompts.clear()
    let last: SessionID | undefined
    while (true) {
      const page = yield* sessions.snapshots(last)
      for (const { floor, incarnation, sessionID } of page) {
        yield* applyMessages(sessionID, floor)
        const { events } = yield* log.read({ sessionID, after: floor, incarnation })
        yield* apply(events.filter(({ position }) => position <= error.floor))
      }
      last = page.at(-1)?.sessionID
      if (last === undefined) return
    }
  })

  return { prompts, apply, fromSnapshot, onRemoved: (id: SessionID) => Effect.sync(() => prompts.delete(id)) }
}

it.effect("RT-14, CN-12: a consumer of the feed that starts after a prune has what one before it had", () =>
  Effect.gen(function* () {
    const ids = [session(), session(), session()]
    yield* interleaved(ids, 5)
    const whole = makePrompts()
    yield* whole.apply((yield* feedAll(0, 512)).events)
    const [one = session(), two = session()] = ids
    yield* pruned(one, { to: 20 })
    yield* pruned(two, { to: 50 })
    const { prompts, ...derived } = makePrompts()
    const name = unique()
    yield* drain(Consumer.run({ name, batchSize: 5, ...derived }))
    assert.deepStrictEqual(new Map([...prompts].toSorted()), new Map([...whole.prompts].toSorted()))
    assert.deepInclude(yield* statusOf(name), { lag: 0, state: "idle" })
    assert.strictEqual(prompts.size, 3)
  }).pipe(Effect.provide(store))
)

it.effect("CN-20: removals are delivered before a snapshot, so that a later life in it stays", () =>
  Effect.gen(function* () {
    const [log, id, other] = [yield* EventLog, session(), session()]
    const { prompts, ...derived } = makePrompts()
    const name = unique()
    yield* begun(id, 1, 1)
    yield* drain(Consumer.run({ name, ...derived }))
    assert.deepStrictEqual(prompts.get(id), ["question 0"])
    yield* log.remove(id)
    yield* begun(id, 2, 1)
    yield* begun(other, 1, 1)
    yield* pruned(other)
    yield* drain(Consumer.run({ name, ...derived }))
    assert.deepStrictEqual(prompts.get(id), ["question 0", "question 1"])
    assert.deepStrictEqual(prompts.get(other), ["question 0"])
    assert.deepInclude(yield* statusOf(name), { lag: 0 })
  }).pipe(Effect.provide(store))
)

it.effect("CN-12: a consumer of the feed without a snapshot ends with CursorExpired and keeps its cursor", () =>
  Effect.gen(function* () {
    const [id, name] = [session(), unique()]
    yield* begun(id, 2, 1)
    const floor = (yield* readAll(id)).at(-1)?.position ?? 0
    yield* pruned(id)
    const ended = yield* Effect.flip(drain(Consumer.run({ name, apply: () => Effect.void })))
    assert.deepInclude(ended, { _tag: "CursorExpired", cursor: 0, floor })
    assert.deepInclude(yield* statusOf(name), { cursor: 0 })
  }).pipe(Effect.provide(store))
)

it.effect("CN-10: a snapshot of the feed that fails stops the consumer, and is repeated in the next run", () =>
  Effect.gen(function* () {
    const [id, name] = [session(), unique()]
    yield* begun(id, 2, 1)
    const end = (yield* readAll(id)).at(-1)?.position ?? 0
    yield* pruned(id)
    const options = { name, apply: () => Effect.void, retry: Schedule.stop, onPoison: "skip" } as const
    const failing = Consumer.run({ ...options, fromSnapshot: () => Effect.fail(new Error("no room")) })
    const stopped = yield* Effect.flip(drain(failing))
    assert.strictEqual(stopped._tag, "ConsumerStopped")
    assert.include(stopped.message, "stopped at the snapshot of the feed: no room")
    assert.notInclude(stopped.message, "skip")
    const status = yield* statusOf(name)
    assert.deepInclude(status, { cursor: 0, state: "stopped", skipped: 0 })
    assert.include(status?.poison?.details, "not kept")
    const floors: Array<number> = []
    const fromSnapshot = ({ floor }: CursorExpired) => Effect.sync(() => void floors.push(floor))
    yield* drain(Consumer.run({ ...options, fromSnapshot }))
    assert.deepStrictEqual(floors, [end])
    assert.deepInclude(yield* statusOf(name), { cursor: end, lag: 0, state: "idle" })
  }).pipe(Effect.provide(store))
)
