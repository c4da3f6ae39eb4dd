/** What a move of the leaf leaves alone, how a session without moves is read, and pages of the tree. */
import { assert, it } from "@effect/vitest"
import { Array as Arr, Effect, Layer } from "effect"
import { type Draft, draft } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { Inbox } from "../../packages/log/src/store/Inbox.ts"
import { SessionStore } from "../../packages/log/src/store/SessionStore.ts"
import { layerStore } from "../../packages/log/src/Store.ts"
import { memoryLog } from "../support/Database.ts"
import { admitted, created, message, renamed, session, step, tokens } from "../support/Logs.ts"
import { begun } from "../support/Pruning.ts"
import { recording } from "../support/Statements.ts"

const said = (text: string, messageID = message()) => draft("session.next.synthetic", { messageID, text })

it.layer(Layer.provideMerge(layerStore, memoryLog))("sessions and their leaf", (it) => {
  it.effect("HP-9: a move of the leaf changes neither agent, model, Location, title, budget, spending nor inbox", () =>
    Effect.gen(function* () {
      const [log, store, inbox, id] = [yield* EventLog, yield* SessionStore, yield* Inbox, session()]
      const answer = message()
      yield* log.append(id, [
        created,
        said("first"),
        draft("session.next.agent.switched", { messageID: message(), agent: "plan" }),
        draft("session.next.model.switched", { messageID: message(), model: { providerID: "p", id: "m" } }),
        draft("session.next.moved", { location: { directory: "/elsewhere" } }),
        renamed("Title"),
        draft("session.next.budget.set", { budget: { tokens: 1_000 } }),
        step(answer),
        draft("session.next.step.ended", { assistantMessageID: answer, finish: "stop", cost: 0.5, tokens: tokens(7) }),
        admitted(message(), "waits")
      ])
      const kept = Effect.map(
        store.get(id),
        ({ agent, budget, cost, location, model, title, tokens }) =>
          ({ agent, budget, cost, location, model, title, tokens }) as const
      )
      const before = yield* kept
      assert.deepInclude(before, { agent: "plan", title: "Title", cost: 0.5, budget: { tokens: 1_000 } })
      const waiting = yield* inbox.waiting(id, { limit: 10 })
      yield* log.append(id, [draft("session.next.leaf.moved", { path: [] })])
      assert.strictEqual((yield* store.leaf(id)).messageID, undefined)
      assert.deepStrictEqual(yield* kept, before)
      assert.deepStrictEqual(yield* inbox.waiting(id, { limit: 10 }), waiting)
      assert.strictEqual(waiting.length, 1)
    })
  )

  it.effect("HP-10: messages of a session whose leaf never moved are read without ranges, others with them", () =>
    Effect.gen(function* () {
      const [log, store, id] = [yield* EventLog, yield* SessionStore, session()]
      yield* begun(id, 3)
      const read = Effect.gen(function* () {
        const texts = new Set<string>()
        yield* Effect.withTracer(
          Effect.zipRight(store.context(id, -1), store.messages({ sessionID: id, limit: 10 })),
          recording(texts)
        )
        return [...texts].filter((text) => /FROM session_message|JOIN session_message/.test(text))
      })
      const linear = yield* read
      assert.isAbove(linear.length, 0)
      assert.deepStrictEqual(
        linear.filter((text) => text.includes("json_each")),
        []
      )
      const messageID = (yield* store.tree({ sessionID: id, limit: 1 })).items[0]?.id ?? message()
      const { through: path } = (yield* store.place(id, messageID)) ?? (yield* Effect.dieMessage("no first message"))
      yield* log.append(id, [draft("session.next.leaf.moved", { messageID, path }), said("after")])
      assert.isTrue((yield* read).some((text) => text.includes("json_each")))
    })
  )

  it.effect("HP-25: the tree has the beginning of each text, and pages of at most 500 messages in order", () =>
    Effect.gen(function* () {
      const [log, store, id] = [yield* EventLog, yield* SessionStore, session()]
      const long = `${"x".repeat(199)}😀 and more`
      const drafts = Arr.makeBy(502, (at): Draft => said(at === 0 ? long : `text ${at}`))
      yield* log.append(id, [created, ...drafts])
      const first = yield* store.tree({ sessionID: id, limit: 10_000 })
      assert.deepStrictEqual([first.items.length, first.total], [500, 502])
      assert.strictEqual(first.items[0]?.text, "x".repeat(199))
      const second = yield* store.tree({ sessionID: id, limit: 10_000, cursor: first.cursor })
      assert.isUndefined(second.cursor)
      const all = [...first.items, ...second.items]
      assert.deepStrictEqual(
        all.map(({ text }) => text).slice(1),
        Arr.makeBy(501, (at) => `text ${at + 1}`)
      )
      assert.deepStrictEqual(
        all.map(({ parentID }) => parentID),
        [undefined, ...all.slice(0, -1).map(({ id }) => id)]
      )
    })
  )
})
