/** Sessions: one, lists, families and the checks of an append (IB-5, IB-13, AD-2, EX-D6, TO-105, TO-106, PJ-6). */
import { assert, it } from "@effect/vitest"
import { Effect, Struct, TestClock } from "effect"
import type { Address } from "../../packages/log/src/domain/Address.ts"
import { ActivityID, type SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { draft, type EventOfType } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import type { ListOptions } from "../../packages/log/src/store/Pages.ts"
import { SessionStore } from "../../packages/log/src/store/SessionStore.ts"
import type { ReadModel } from "./ReadModel.ts"
import { admitted, message, renamed, session, step, tokens, unique } from "./Samples.ts"

type Created = EventOfType<"session.created">["data"]

/** Creates a session, one second after the previous event. */
const create = Effect.fnUntraced(function* (data: Partial<Created> = {}, id: SessionID = session()) {
  const log = yield* EventLog
  yield* TestClock.adjust("1 second")
  yield* log.append(id, [draft("session.created", { location: { directory: "/work" }, ...data })])
  return id
})

/** A folder that no other test uses. */
const folder = (): string => `/work/${unique()}`

/** Sessions of one new folder, the oldest first. */
const createIn = (directory: string, count: number) =>
  Effect.replicateEffect(create({ location: { directory } }), count)

const list = (options: ListOptions) => Effect.flatMap(SessionStore, (store) => store.list(options))
const listed = (options: ListOptions) => Effect.map(list(options), ({ items }) => items.map(({ id }) => id))

/** The sizes of the pages, and all ids. */
const pages = Effect.fnUntraced(function* (options: ListOptions) {
  const [ids, sizes]: [Array<SessionID>, Array<number>] = [[], []]
  let cursor: string | undefined
  do {
    const page = yield* list(cursor === undefined ? options : { ...options, cursor })
    ids.push(...page.items.map(({ id }) => id))
    sizes.push(page.items.length)
    cursor = page.cursor
  } while (cursor !== undefined)
  return { ids, sizes }
})

/** One step that spent so much. */
const spend = Effect.fnUntraced(function* (id: SessionID, cost: number, input: number, estimated = false) {
  const [log, assistantMessageID] = [yield* EventLog, message()]
  const ended = draft("session.next.step.ended", {
    assistantMessageID,
    finish: "stop",
    cost,
    tokens: tokens(input),
    ...(estimated ? { estimated: true as const } : {})
  })
  yield* log.append(id, [step(assistantMessageID), ended])
})

/** A child of a child of a session. */
const aFamily = Effect.gen(function* () {
  const root = yield* create()
  const child = yield* create({ parentID: root })
  return { root, child, grandchild: yield* create({ parentID: child }) }
})

/** Registers the tests of `SessionStore` that read sessions and the append checks. */
export const sessionsContract = <E>({ layer, name }: ReadModel<SessionStore, E>): void =>
  it.layer(layer)(`sessions, ${name}`, (it) => {
    it.effect("CR-5: `get` returns the session as its committed events made it", () =>
      Effect.gen(function* () {
        const [store, log] = [yield* SessionStore, yield* EventLog]
        const [model, other] = [
          { providerID: "p", id: "m" },
          { providerID: "p", id: "other", variant: "high" }
        ]
        const id = yield* create({ title: "before", agent: "build", model })
        const before = yield* store.get(id)
        assert.deepInclude(before, { id, title: "before", agent: "build", model, cost: 0, tokens: tokens(0) })
        yield* TestClock.adjust("1 second")
        yield* log.append(id, [
          renamed("after"),
          draft("session.next.agent.switched", { messageID: message(), agent: "plan" }),
          draft("session.next.model.switched", { messageID: message(), model: other }),
          draft("session.next.moved", { location: { directory: "/elsewhere" } }),
          draft("session.next.budget.set", { budget: { cost: 2 } })
        ])
        const after = yield* store.get(id)
        const now = { title: "after", agent: "plan", model: other, location: { directory: "/elsewhere" } }
        assert.deepInclude(after, { ...now, budget: { cost: 2 }, createdAt: before.createdAt })
        assert.isAbove(after.updatedAt, before.updatedAt)
      })
    )

    it.effect("CR-5: `get` of a session without a log fails with SessionNotFound", () =>
      Effect.gen(function* () {
        const [store, sessionID] = [yield* SessionStore, session()]
        assert.deepInclude(yield* Effect.flip(store.get(sessionID)), { _tag: "SessionNotFound", sessionID })
      })
    )

    it.effect("CR-5: `standing` counts the waiting inputs of one session by delivery, beside its row", () =>
      Effect.gen(function* () {
        const [log, store, id] = [yield* EventLog, yield* SessionStore, yield* create()]
        yield* log.append(yield* create(), [admitted(message())])
        const promoted = message()
        yield* log.append(id, [admitted(promoted), admitted(message()), admitted(message(), "hello", "queue")])
        yield* log.append(id, [
          draft("session.next.prompt.promoted", { messageID: promoted, prompt: { text: "hello" }, timeCreated: 1 })
        ])
        const { queued, session: found, steers } = yield* store.standing(id)
        assert.deepStrictEqual([steers, queued], [1, 1])
        assert.deepStrictEqual(found, yield* store.get(id))
        const missing = session()
        assert.deepInclude(yield* Effect.flip(store.standing(missing)), { _tag: "SessionNotFound", sessionID: missing })
      })
    )

    it.effect(
      "CX-51: `standing` says where the session's context is, and whether instruction files were discovered",
      () =>
        Effect.gen(function* () {
          const [log, store, id] = [yield* EventLog, yield* SessionStore, yield* create()]
          const none = { epoch: null, baselineSeq: -1, compactedSeq: -1, toldSeq: -1, discovered: false }
          assert.deepInclude((yield* store.standing(id)).marks, none)
          const context = { baseline: 0, snapshot: { told: {} } }
          const [framed, told] = yield* log.append(id, [
            draft("session.next.request.framed", { hash: "h", system: [""], baselineSeq: 0, context }),
            draft("session.next.context.updated", { messageID: message(), text: "changed" }),
            draft("session.next.instructions.discovered", { paths: ["/work/a/AGENTS.md"] })
          ])
          const { epoch, discovered, toldSeq } = (yield* store.standing(id)).marks
          assert.deepStrictEqual([epoch, toldSeq, discovered], [framed.seq, told?.seq, true])
        })
    )

    it.effect("IB-5: the list has the last used session first", () =>
      Effect.gen(function* () {
        const [log, directory] = [yield* EventLog, folder()]
        const [first = session(), second = session(), third = session()] = yield* createIn(directory, 3)
        assert.deepStrictEqual(yield* listed({ directory }), [third, second, first])
        yield* TestClock.adjust("1 second")
        yield* log.append(first, [renamed("used")])
        assert.deepStrictEqual(yield* listed({ directory }), [first, third, second])
      })
    )

    it.effect("PJ-6: pages of any size hold every session once, sessions used at the same time included", () =>
      Effect.gen(function* () {
        const [log, directory] = [yield* EventLog, folder()]
        const ids = yield* createIn(directory, 7)
        yield* TestClock.adjust("1 second")
        for (const id of ids.slice(0, 4)) yield* log.append(id, [renamed("at the same time")])
        const whole = yield* pages({ directory })
        assert.deepStrictEqual(whole.ids.toSorted(), [...ids].toSorted())
        assert.deepStrictEqual((yield* pages({ directory, limit: 3 })).sizes, [3, 3, 1])
        for (const limit of [1, 2, 3, 6, 7, 8]) {
          assert.deepStrictEqual((yield* pages({ directory, limit })).ids, whole.ids)
        }
      })
    )

    it.effect("PJ-6: a cursor that no page returned, and a search over 1,000 characters, are InvalidInput", () =>
      Effect.gen(function* () {
        const refused = yield* Effect.flip(list({ cursor: "not a cursor" }))
        assert.deepInclude(refused, { _tag: "InvalidInput", field: "cursor" })
        const long = yield* Effect.flip(list({ search: "x".repeat(1_001) }))
        assert.deepInclude(long, { _tag: "InvalidInput", field: "search" })
        assert.deepStrictEqual(yield* listed({ search: "x".repeat(1_000) }), [])
      })
    )

    it.effect(
      "IB-5: a search matches part of the title or a prompt's text literally, ignoring the case of A to Z",
      () =>
        Effect.gen(function* () {
          const [log, directory, mark] = [yield* EventLog, folder(), unique()]
          const location = { directory }
          const byTitle = yield* create({ location, title: `100% of ${mark} Done_now` })
          const byPrompt = yield* create({ location })
          yield* log.append(byPrompt, [admitted(message(), `please look at ${mark}`)])
          yield* create({ location, title: "another" })
          assert.deepStrictEqual(yield* listed({ search: mark.toUpperCase() }), [byPrompt, byTitle])
          assert.deepStrictEqual(yield* listed({ directory, search: "100% OF" }), [byTitle])
          assert.deepStrictEqual(yield* listed({ directory, search: "done_NOW" }), [byTitle])
          for (const search of ["100_ of", "1%of", "done%now", "\\"]) {
            assert.deepStrictEqual(yield* listed({ directory, search }), [])
          }
        })
    )

    it.effect("IB-5: the selection of a folder follows a session that moves", () =>
      Effect.gen(function* () {
        const [log, before, after] = [yield* EventLog, folder(), folder()]
        const [id = session(), other] = yield* createIn(before, 2)
        yield* log.append(id, [draft("session.next.moved", { location: { directory: after } })])
        assert.deepStrictEqual(yield* listed({ directory: before }), [other])
        assert.deepStrictEqual(yield* listed({ directory: after }), [id])
      })
    )

    it.effect("IB-13: the sessions with exactly a title, at most ten, last used first, of one folder if asked", () =>
      Effect.gen(function* () {
        const [store, title, directory] = [yield* SessionStore, unique(), folder()]
        const ids = yield* Effect.replicateEffect(create({ title }), 11)
        const here = yield* create({ title, location: { directory } })
        yield* create({ title: `${title} and more` })
        const newest = [here, ...ids.toReversed().slice(0, 9)]
        assert.deepStrictEqual((yield* store.titled(title)).map(Struct.get("id")), newest)
        assert.deepStrictEqual((yield* store.titled(title, { directory })).map(Struct.get("id")), [here])
      })
    )

    it.effect("AD-2: an address finds its session, and no other address does", () =>
      Effect.gen(function* () {
        const [store, log, id] = [yield* SessionStore, yield* EventLog, yield* create()]
        const at: Address = {
          scope: "shared",
          shared: `s${unique()}`,
          kind: "agent",
          name: "build",
          session: "default"
        }
        assert.isUndefined(yield* store.addressed(at))
        yield* log.append(id, [draft("session.next.addressed", { address: at, root: "/work" })])
        assert.deepInclude(yield* store.addressed(at), { id, address: at, root: "/work" })
        assert.isUndefined(yield* store.addressed({ ...at, session: "other" }))
        assert.deepStrictEqual(
          yield* listed({ house: { scope: "shared", shared: at.shared, kind: "agent", name: "build" } }),
          [id]
        )
      })
    )

    it.effect("TU-13: a session is interrupted from the start of an activity until it settles", () =>
      Effect.gen(function* () {
        const [store, log, id] = [yield* SessionStore, yield* EventLog, yield* create()]
        const activityID = ActivityID.make(`act_${unique()}`)
        const isListed = Effect.map(store.interrupted, (all) => all.some((each) => each.id === id))
        assert.isFalse(yield* isListed)
        yield* log.append(id, [draft("session.next.activity.started", { activityID, trigger: "steer" })])
        assert.isTrue(yield* isListed)
        yield* log.append(id, [draft("session.next.activity.settled", { activityID, outcome: "completed" })])
        assert.isFalse(yield* isListed)
        assert.deepStrictEqual((yield* store.get(id)).activity, { id: activityID, state: "completed" })
      })
    )

    it.effect("TO-105: the ancestors come from the parent to the root, without one that was removed", () =>
      Effect.gen(function* () {
        const [store, log] = [yield* SessionStore, yield* EventLog]
        const { child, grandchild, root } = yield* aFamily
        const above = (id: SessionID) => Effect.map(store.ancestors(id), (line) => line.map((each) => each.id))
        assert.deepStrictEqual(yield* above(grandchild), [child, root])
        assert.deepStrictEqual(yield* above(root), [])
        assert.deepStrictEqual([yield* store.rootOf(grandchild), yield* store.rootOf(root)], [root, root])
        yield* log.remove(child)
        assert.deepStrictEqual(yield* above(grandchild), [])
        assert.strictEqual(yield* store.rootOf(grandchild), grandchild)
      })
    )

    it.effect("TO-106: the usage of a session is its own and that of all its descendants", () =>
      Effect.gen(function* () {
        const [store, family] = [yield* SessionStore, yield* aFamily]
        yield* spend(family.root, 1, 100)
        yield* spend(family.child, 2, 10, true)
        yield* spend(family.grandchild, 4, 1)
        yield* spend(yield* create(), 8, 1_000)
        assert.deepStrictEqual(yield* store.treeUsage(family.root), { cost: 7, tokens: tokens(111, 3) })
        assert.deepStrictEqual(yield* store.treeUsage(family.child), { cost: 6, tokens: tokens(11, 2) })
        assert.deepStrictEqual(yield* store.treeEstimated(family.root), { cost: 2, tokens: 11 })
        assert.deepStrictEqual(yield* store.treeEstimated(family.grandchild), { cost: 0, tokens: 0 })
      })
    )

    it.effect("EX-D6: an append that checks the Location is refused after a move, and stores nothing", () =>
      Effect.gen(function* () {
        const [store, log, id] = [yield* SessionStore, yield* EventLog, yield* create()]
        const commit = store.isAt({ directory: "/work" })
        yield* log.append(id, [renamed("here")], { commit })
        const away = { directory: "/work", workspaceID: "remote" }
        yield* log.append(id, [draft("session.next.moved", { location: away })])
        const refused = yield* Effect.flip(log.append(id, [renamed("late")], { commit }))
        assert.deepInclude(refused, { _tag: "LocationLeft", sessionID: id })
        assert.strictEqual((yield* store.get(id)).title, "here")
        yield* log.append(id, [renamed("there")], { commit: store.isAt(away) })
      })
    )

    it.effect("IB-13: of concurrent creations that check one title, one is stored", () =>
      Effect.gen(function* () {
        const [store, log, title] = [yield* SessionStore, yield* EventLog, unique()]
        const made = draft("session.created", { location: { directory: "/work" }, title })
        const outcomes = yield* Effect.forEach(
          Array.from({ length: 6 }, () => session()),
          (id) => Effect.either(log.append(id, [made], { commit: store.isOnlyOne(title) })),
          { concurrency: "unbounded" }
        )
        const refused = outcomes.flatMap((outcome) => (outcome._tag === "Left" ? [outcome.left] : []))
        assert.strictEqual(refused.length, 5)
        for (const error of refused) assert.deepInclude(error, { _tag: "TitleTaken", title })
        const [only] = yield* store.titled(title)
        // A session's own title does not count.
        yield* log.append(only?.id ?? session(), [renamed(title)], { commit: store.isOnlyOne(title) })
      })
    )
  })
