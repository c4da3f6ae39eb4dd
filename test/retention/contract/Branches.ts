/** Pruning a session with branches: history can continue wherever it could before. Spec: RT-6 (HP-20). */
import { assert, it } from "@effect/vitest"
import { Effect, FastCheck as fc, Layer } from "effect"
import type { MessageID, SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import { draft } from "../../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../../packages/log/src/log/EventLog.ts"
import { SessionStore } from "../../../packages/log/src/store/SessionStore.ts"
import { layerStore } from "../../../packages/log/src/Store.ts"
import { cases } from "../../support/Cases.ts"
import type { LogLayer } from "../../support/Database.ts"
import { created, session } from "../../support/Logs.ts"
import { fill, pruned, share, turns } from "../../support/Pruning.ts"
import { readModels } from "../../support/ReadModels.ts"

/** The messages of all branches, in the order of their events. */
const messagesOf = (id: SessionID) =>
  Effect.map(
    Effect.flatMap(SessionStore, (store) => store.tree({ sessionID: id, limit: 500 })),
    ({ items }) => items.map((item) => item.id)
  )

/** Moves the leaf behind a message. */
const moveTo = Effect.fnUntraced(function* (id: SessionID, messageID: MessageID) {
  const place = yield* (yield* SessionStore).place(id, messageID)
  if (place === undefined) return yield* Effect.dieMessage("no such message")
  yield* (yield* EventLog).append(id, [draft("session.next.leaf.moved", { messageID, path: place.through })])
})

/** Removes a message from the context, or replaces it. */
const edit = (id: SessionID, messageID: MessageID, turn: number) =>
  Effect.flatMap(EventLog, (log) =>
    log.append(id, [
      draft("session.next.context.edited", {
        messageID,
        ...(turn % 2 === 0 ? {} : { content: [{ type: "text", text: `edited in ${turn}` }] })
      })
    ])
  )

/** What the store shows where the leaf is, and then behind each message in turn. */
const everywhere = Effect.fnUntraced(function* (id: SessionID) {
  const store = yield* SessionStore
  const shown: Array<unknown> = []
  for (const message of yield* messagesOf(id)) {
    yield* moveTo(id, message)
    shown.push(JSON.stringify([yield* store.context(id, -1), (yield* store.messages({ sessionID: id })).items]))
  }
  return shown
})

export const branches = (layer: LogLayer) => {
  /** A store of its own. */
  const memory = Layer.fresh(Layer.provideMerge(layerStore, layer))
  it.effect.prop(
    "RT-6, HP-20, CP-444: behind a pruned floor every branch shows what it showed, edits included, and can be continued",
    [fc.array(fc.option(share), { minLength: 2, maxLength: 6 }), share],
    ([moves, part]) =>
      Effect.gen(function* () {
        const id = session()
        // The same events in both stores.
        const appends = turns(moves.length, 2)
        const build = Effect.gen(function* () {
          yield* fill(id, [[created]])
          for (const [index, move] of moves.entries()) {
            yield* fill(id, appends.slice(index, index + 1))
            const messages = yield* messagesOf(id)
            const edited = messages[Math.floor(part * (messages.length - 1))]
            if (edited !== undefined) yield* edit(id, edited, index)
            const target = move === null ? undefined : messages[Math.floor(move * (messages.length - 1))]
            if (target !== undefined) yield* moveTo(id, target)
          }
          return yield* Effect.flatMap(EventLog, (log) => log.latest(id))
        })
        const whole = yield* Effect.provide(Effect.zipRight(build, everywhere(id)), memory)
        const after = yield* Effect.provide(
          Effect.gen(function* () {
            const last = yield* build
            const before = yield* readModels(id, { after: last, inputs: [] })
            yield* pruned(id, { to: Math.floor(part * last) })
            assert.deepStrictEqual(yield* readModels(id, { after: last, inputs: [] }), before)
            return yield* everywhere(id)
          }),
          memory
        )
        assert.deepStrictEqual(after, whole)
      }),
    { fastCheck: { numRuns: cases(4) } }
  )
}
