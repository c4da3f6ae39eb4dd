/** Readers whose events were pruned: the feed's floor, and snapshots to start from. Spec: specs/log.md. */
import { assert, it } from "@effect/vitest"
import { Effect, FastCheck as fc, Layer, Struct } from "effect"
import type { SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import type { Message } from "../../../packages/log/src/domain/Message.ts"
import { EventLog } from "../../../packages/log/src/log/EventLog.ts"
import { atOnce } from "../../../packages/log/src/retention/Pace.ts"
import { restore } from "../../../packages/log/src/retention/Retention.ts"
import { layerStore } from "../../../packages/log/src/Store.ts"
import { SessionStore } from "../../../packages/log/src/store/SessionStore.ts"
import { feedAll } from "../../contracts/FeedContract.ts"
import { cases } from "../../support/Cases.ts"
import { type LogLayer, temporaryFolder } from "../../support/Database.ts"
import { begin, session } from "../../support/Logs.ts"
import { begun, fill, interleaved, pruned, share } from "../../support/Pruning.ts"
import { turnLog } from "../../support/TurnLogs.ts"

/** A session's messages up to a place, newest first. */
const messagesTo = Effect.fnUntraced(function* (sessionID: SessionID, to: number) {
  const store = yield* SessionStore
  const items: Array<Message> = []
  let cursor: number | undefined = to + 1
  do {
    const page: Effect.Effect.Success<ReturnType<typeof store.messages>> = yield* store.messages({
      sessionID,
      order: "desc",
      limit: 3,
      cursor
    })
    items.push(...page.items)
    cursor = page.cursor
  } while (cursor !== undefined)
  return items
})

export const readers = (layer: LogLayer) => {
  const memory = Layer.provideMerge(layerStore, layer)
  it.effect.prop(
    "RT-13: a snapshot and the messages up to its floor are those that the session had when its log ended there",
    [turnLog, share],
    ([appends, part]) =>
      Effect.gen(function* () {
        const [log, store, id] = [yield* EventLog, yield* SessionStore, session()]
        const drafts = appends.flat()
        const states = new Map<number, object>()
        for (const [seq, draft] of drafts.entries()) {
          yield* fill(id, [[draft]])
          if (draft.type !== "session.next.activity.settled") continue
          states.set(seq, { session: yield* store.get(id), messages: yield* messagesTo(id, seq) })
        }
        const { cut } = yield* pruned(id, { to: Math.floor(part * drafts.length) })
        const { floor, incarnation, session: shown, sessionID } = yield* store.snapshot(id)
        assert.deepStrictEqual([sessionID, floor], [id, cut.to])
        assert.strictEqual(shown === undefined, floor < 0)
        assert.strictEqual(incarnation, (yield* log.head(id)).incarnation)
        assert.deepStrictEqual(
          shown === undefined ? undefined : { session: shown, messages: yield* messagesTo(id, floor) },
          floor < 0 ? undefined : states.get(floor)
        )
      }).pipe(Effect.provide(memory)),
    { fastCheck: { numRuns: cases(10) } }
  )

  it.effect("RT-13: a session that does not exist has no snapshot", () =>
    Effect.gen(function* () {
      const [log, store, id] = [yield* EventLog, yield* SessionStore, session()]
      yield* log.claimReplay(id, "other")
      for (const sessionID of [id, session()]) {
        assert.deepInclude(yield* Effect.flip(store.snapshot(sessionID)), { _tag: "SessionNotFound", sessionID })
      }
      assert.deepStrictEqual(yield* store.snapshots(), [])
    }).pipe(Effect.provide(memory))
  )

  it.effect("RT-14: pages of snapshots hold every session once, in the order of ids", () =>
    Effect.gen(function* () {
      const [store, ids] = [yield* SessionStore, Array.from({ length: 120 }, () => session())]
      const [last = session()] = ids.toSorted().toReversed()
      for (const id of ids) yield* id === last ? begun(id, 1) : begin(id)
      yield* pruned(last)
      const first = yield* store.snapshots()
      const second = yield* store.snapshots(first.at(-1)?.sessionID)
      assert.strictEqual(first.length, 100)
      assert.deepStrictEqual([...first, ...second].map(Struct.get("sessionID")), ids.toSorted())
      assert.deepInclude(first[0], { session: undefined, floor: -1 })
      assert.isDefined(second.at(-1)?.session)
      assert.deepStrictEqual(second.at(-1), yield* store.snapshot(last))
    }).pipe(Effect.provide(memory))
  )

  const move = fc.oneof(
    fc.record({ read: fc.integer({ min: 1, max: 40 }) }),
    fc.record({ prune: fc.nat(2), to: fc.integer({ min: 0, max: 60 }) }),
    fc.record({ restore: fc.nat(2) })
  )

  it.scoped.prop(
    "RT-12: whatever is pruned and restored meanwhile, a reader of the feed gets each event once or CursorExpired",
    [fc.array(move, { maxLength: 12 })],
    ([moves]) =>
      Effect.gen(function* () {
        const [log, folder, ids] = [yield* EventLog, yield* temporaryFolder, [session(), session(), session()]]
        yield* interleaved(ids, 4)
        const all = (yield* feedAll(0, 512)).events
        const archives = ids.map(() => new Array<{ readonly path: string; readonly floor: number }>())
        // The last removed position of each session, from its archives.
        const floor = () => Math.max(0, ...archives.map((of) => of.at(-1)?.floor ?? 0))
        let cursor = 0
        for (const step of [...moves, { read: 512 }]) {
          if ("read" in step) {
            const page = yield* Effect.either(log.readFeed({ after: cursor, limit: step.read }))
            if (page._tag === "Left") {
              assert.deepInclude(page.left, { _tag: "CursorExpired", cursor, floor: floor() })
              assert.isAbove(floor(), cursor)
              continue
            }
            const next = all.filter(({ position }) => position > cursor).slice(0, step.read)
            assert.deepStrictEqual(page.right.events, next)
            cursor = page.right.position
          } else if ("prune" in step) {
            const { cut, path } = yield* pruned(ids[step.prune] ?? session(), { to: step.to }, folder)
            const last = all.find(({ seq, sessionID }) => sessionID === cut.sessionID && seq === cut.to)
            if (path !== undefined) archives[step.prune]?.push({ path, floor: last?.position ?? 0 })
          } else {
            const archive = archives[step.restore]?.pop()
            if (archive !== undefined) yield* restore(archive.path, { pace: atOnce })
          }
        }
      }).pipe(Effect.provide(memory)),
    { fastCheck: { numRuns: cases(6) } }
  )
}
