/** `cancel`: exactly the run that is named, whether it is active or waits. */
import { it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { assert } from "vitest"
import { held, says, textParts } from "../support/ScriptedModel.ts"
import { connect, deltasOf, fresh, script, typesOf, type Client, type Served, holdOne } from "./support/Served.ts"

/** A run that says something and goes on until it is stopped. */
const endless = (served: Served) =>
  script(served, ({ answer }) =>
    Effect.flatMap(Deferred.make<void>(), (gate) => answer(held(textParts("t", "hm").slice(0, 2), gate)))
  )

const started = Effect.fnUntraced(function* (client: Client, id = "m1") {
  yield* client.ask({ op: "send", id, input: "hi" })
  const frames = yield* client.untilType("delta")
  return frames[0]?.["run"]
})

for (const by of ["run", "client id"] as const) {
  it.scopedLive(`FR-11: cancelled by its ${by}, an active run ends with one done, and without a message`, () =>
    Effect.gen(function* () {
      const served = yield* fresh()
      yield* endless(served)
      const client = yield* connect(served.path)
      const run = yield* started(client)
      yield* client.ask({ op: "cancel", id: by === "run" ? run : "m1" })
      const frames = yield* client.untilType("done")
      assert.deepStrictEqual(typesOf(frames), ["done"])
      assert.deepInclude(frames[0], { id: "m1", run, status: "cancelled" })
      // Nothing more comes of it.
      yield* client.ask({ op: "ping" })
      assert.deepStrictEqual(yield* client.next, { type: "pong" })
    })
  )
}

it.scopedLive("FR-11: every follower is told once, and so is who cancels without following", () =>
  Effect.gen(function* () {
    const served = yield* fresh()
    yield* endless(served)
    const [sender, follower, other] = [
      yield* connect(served.path),
      yield* connect(served.path),
      yield* connect(served.path)
    ]
    const run = yield* started(sender)
    yield* follower.ask({ op: "resume" })
    yield* follower.untilType("start")
    yield* other.ask({ op: "cancel", id: run })
    for (const client of [sender, follower, other]) {
      const frames = yield* client.untilType("done")
      assert.deepInclude(frames.at(-1), { run, status: "cancelled" })
      yield* client.ask({ op: "ping" })
      assert.deepStrictEqual(yield* client.next, { type: "pong" })
    }
  })
)

it.scopedLive("DC-19: a run that waits ends as cancelled, without a start and without a model", () =>
  Effect.gen(function* () {
    const served = yield* fresh()
    const gate = yield* holdOne(served)
    const client = yield* connect(served.path)
    yield* client.ask({ op: "send", id: "m1", input: "first" })
    yield* client.untilType("start")
    yield* client.ask({ op: "send", id: "m2", input: "second" })
    yield* client.ask({ op: "send", id: "m3", input: "third" })
    // The prompt is on disk when a repetition of it finds it; the ping alone would not tell.
    yield* client.ask({ op: "send", id: "m2", input: "other" })
    yield* client.untilType("error")
    yield* client.ask({ op: "cancel", id: "m2" })
    const frames = yield* client.untilType("done")
    assert.deepStrictEqual(typesOf(frames), ["done"])
    assert.deepInclude(frames[0], { id: "m2", status: "cancelled" })
    yield* script(served, ({ answer }) => answer(says("three")))
    yield* Deferred.succeed(gate, undefined)
    const rest = yield* client.until(({ id, type }) => id === "m3" && type === "done")
    assert.strictEqual(deltasOf(rest), "onethree")
    assert.strictEqual(yield* script(served, ({ pending }) => pending), 2)
  })
)

it.scopedLive("FR-11: the run that waits behind a cancelled one goes on", () =>
  Effect.gen(function* () {
    const served = yield* fresh()
    yield* endless(served)
    const client = yield* connect(served.path)
    yield* started(client)
    yield* client.ask({ op: "send", id: "m2", input: "second" })
    yield* script(served, ({ answer }) => answer(says("two")))
    yield* client.ask({ op: "cancel", id: "m1" })
    const frames = yield* client.until(({ id, type }) => id === "m2" && type === "done")
    assert.deepStrictEqual(
      frames.flatMap(({ id, status, type }) => (type === "done" ? [[id, status]] : [])),
      [
        ["m1", "cancelled"],
        ["m2", "ok"]
      ]
    )
  })
)

for (const [what, id] of [
  ["that is over", "m1"],
  ["that never was", "m9"],
  ["whose id is unknown", `ctx-${"0".repeat(32)}`]
] as const) {
  it.scopedLive(`FR-11: a run ${what} is ENOENT`, () =>
    Effect.gen(function* () {
      const served = yield* fresh()
      yield* script(served, ({ answer }) => answer(says("one")))
      const client = yield* connect(served.path)
      yield* client.ask({ op: "send", id: "m1", input: "hi" })
      yield* client.untilType("done")
      yield* client.ask({ op: "cancel", id })
      assert.deepInclude(yield* client.next, { type: "error", id, code: "ENOENT" })
    })
  )
}

it.scopedLive(
  "SO-107, SO-35: a run's own id finds it in whatever session it is, a client's id in the named one only",
  () =>
    Effect.gen(function* () {
      const served = yield* fresh()
      yield* endless(served)
      const client = yield* connect(served.path)
      yield* client.ask({ op: "send", id: "m1", session: "elsewhere", input: "hi" })
      const [start] = yield* client.untilType("delta")
      const other = yield* connect(served.path)
      yield* other.ask({ op: "cancel", id: "m1" })
      assert.deepInclude(yield* other.next, { type: "error", code: "ENOENT" })
      yield* other.ask({ op: "cancel", id: start?.["run"] })
      assert.deepInclude(yield* other.next, { type: "done", status: "cancelled" })
    })
)
