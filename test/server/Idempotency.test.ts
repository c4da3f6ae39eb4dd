/** A client's id names one prompt of its session, however often, from wherever and for how long it is sent. */
import { it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { mkdir } from "node:fs/promises"
import { join } from "node:path"
import { assert } from "vitest"
import { temporaryFolder } from "../support/Harness.ts"
import { finish, held, says, textParts } from "../support/ScriptedModel.ts"
import {
  connect,
  deltasOf,
  fresh,
  latestOf,
  openFor,
  runtimeOf,
  script,
  typesOf,
  uid,
  type Served
} from "./support/Served.ts"

/** The only session, and where its log ends. */
const theSession = Effect.fnUntraced(function* (served: Served) {
  const { items } = yield* runtimeOf(served, (sessions) => sessions.list())
  const [session] = items
  if (session === undefined || items.length > 1) return yield* Effect.dieMessage(`${items.length} sessions`)
  return { session, latest: yield* latestOf(served, session.id) }
})

const pending = (served: Served) => script(served, (model) => model.pending)

it.scopedLive("FR-8: two sends of one id at once are one run, and both get its frames", () =>
  Effect.gen(function* () {
    const served = yield* fresh()
    const gate = yield* Deferred.make<void>()
    yield* script(served, ({ answer }) => answer(held([], gate, [...textParts("t", "Hel", "lo"), finish()])))
    const clients = [yield* connect(served.path), yield* connect(served.path)]
    for (const client of clients) yield* client.ask({ op: "send", id: "m1", input: "hi" })
    const starts = yield* Effect.forEach(clients, (client) => client.next)
    assert.deepStrictEqual(starts[0], starts[1])
    yield* Deferred.succeed(gate, undefined)
    const answers = yield* Effect.forEach(clients, (client) => client.untilType("done"))
    for (const frames of answers) assert.strictEqual(deltasOf(frames), "Hello")
    assert.strictEqual(yield* pending(served), 1)
  })
)

it.scopedLive("FR-8: an id whose run is over gets its final frames again; no model is asked and nothing appended", () =>
  Effect.gen(function* () {
    const served = yield* fresh()
    yield* script(served, ({ answer }) => answer(says("Hello")))
    const client = yield* connect(served.path)
    yield* client.ask({ op: "send", id: "m1", input: "hi" })
    const first = yield* client.untilType("done")
    const before = yield* theSession(served)
    yield* client.ask({ op: "send", id: "m1", input: "hi" })
    const again = yield* client.untilType("done")
    assert.deepStrictEqual(again, first)
    assert.strictEqual((yield* theSession(served)).latest, before.latest)
    assert.strictEqual(yield* pending(served), 1)
  })
)

it.scopedLive("FR-8: also after a restart", () =>
  Effect.gen(function* () {
    const root = yield* temporaryFolder
    const before = yield* openFor({ root })
    yield* script(before, ({ answer }) => answer(says("Hello")))
    const first = yield* connect(before.path)
    yield* first.ask({ op: "send", id: "m1", input: "hi" })
    const frames = yield* first.untilType("done")
    const { latest } = yield* theSession(before)
    yield* before.close
    const after = yield* openFor({ root })
    const second = yield* connect(after.path)
    yield* second.ask({ op: "send", id: "m1", input: "hi" })
    assert.deepStrictEqual(yield* second.untilType("done"), frames)
    assert.strictEqual((yield* theSession(after)).latest, latest)
    assert.strictEqual(yield* pending(after), 0)
    yield* after.close
  })
)

it.scopedLive("FR-8: who sends a waiting id again follows the same run", () =>
  Effect.gen(function* () {
    const served = yield* fresh()
    const gate = yield* Deferred.make<void>()
    yield* script(served, ({ answer }) =>
      Effect.zipRight(answer(held([], gate, [...textParts("t", "one"), finish()])), answer(says("two")))
    )
    const [first, second] = [yield* connect(served.path), yield* connect(served.path)]
    yield* first.ask({ op: "send", id: "m1", input: "first" })
    yield* first.untilType("start")
    yield* first.ask({ op: "send", id: "m2", input: "second" })
    yield* second.ask({ op: "send", id: "m2", input: "second" })
    yield* second.ask({ op: "ping" })
    yield* second.untilType("pong")
    yield* Deferred.succeed(gate, undefined)
    const seen = yield* Effect.forEach([first, second], (client) =>
      Effect.map(
        client.until(({ id, type }) => type === "done" && id === "m2"),
        (frames) => frames.filter(({ id }) => id === "m2")
      )
    )
    assert.deepStrictEqual(seen[0], seen[1])
    assert.strictEqual(yield* pending(served), 2)
  })
)

for (const [what, again] of [
  ["input", { input: "another" }],
  ["cwd", { input: "hi", cwd: "/work" }]
] as const) {
  it.scopedLive(`DC-14: the same id with another ${what} is EINVAL, and nothing is appended`, () =>
    Effect.gen(function* () {
      const served = yield* fresh()
      yield* Effect.promise(() => mkdir(join(served.root, `home/${uid}/agent/build/root/work`), { recursive: true }))
      yield* script(served, ({ answer }) => answer(says("Hello")))
      const client = yield* connect(served.path)
      yield* client.ask({ op: "send", id: "m1", input: "hi" })
      yield* client.untilType("done")
      const before = yield* theSession(served)
      yield* client.ask({ op: "send", id: "m1", ...again })
      assert.deepInclude(yield* client.next, { type: "error", id: "m1", code: "EINVAL" })
      assert.strictEqual((yield* theSession(served)).latest, before.latest)
      assert.strictEqual(yield* pending(served), 1)
    })
  )
}

it.scopedLive("FR-8: a repetition does not bring the session back to where it was", () =>
  Effect.gen(function* () {
    const served = yield* fresh()
    yield* Effect.promise(() => mkdir(join(served.root, `home/${uid}/agent/build/root/work`), { recursive: true }))
    yield* script(served, ({ answer }) => Effect.zipRight(answer(says("one")), answer(says("two"))))
    const client = yield* connect(served.path)
    yield* client.ask({ op: "send", id: "m1", input: "hi" })
    yield* client.untilType("done")
    yield* client.ask({ op: "send", id: "m2", cwd: "/work", input: "there" })
    yield* client.untilType("done")
    const before = yield* theSession(served)
    yield* client.ask({ op: "send", id: "m1", input: "hi" })
    assert.deepStrictEqual(typesOf(yield* client.untilType("done")), ["start", "delta", "message", "done"])
    const after = yield* theSession(served)
    assert.deepStrictEqual([after.latest, after.session.location], [before.latest, before.session.location])
  })
)

it.scopedLive("FR-8: one id in two sessions is two prompts", () =>
  Effect.gen(function* () {
    const served = yield* fresh()
    yield* script(served, ({ answer }) => Effect.zipRight(answer(says("one")), answer(says("two"))))
    const client = yield* connect(served.path)
    yield* client.ask({ op: "send", id: "m1", session: "a", input: "hi" })
    const [start] = yield* client.untilType("done")
    yield* client.ask({ op: "send", id: "m1", session: "b", input: "hi" })
    const [other] = yield* client.untilType("done")
    assert.notStrictEqual(start?.["run"], other?.["run"])
    assert.strictEqual(yield* pending(served), 2)
  })
)
