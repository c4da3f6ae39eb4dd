/** `queued`: what a client reads while its prompt waits. */
import { it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { mkdir } from "node:fs/promises"
import { join } from "node:path"
import { assert } from "vitest"
import { says } from "../support/ScriptedModel.ts"
import { connect, fresh, holdOne, script, typesOf, uid } from "./support/Served.ts"

it.scopedLive("SO-90: a send behind a run is answered with queued and its run's id, then with the run", () =>
  Effect.gen(function* () {
    const served = yield* fresh()
    const gate = yield* holdOne(served)
    const client = yield* connect(served.path)
    yield* client.ask({ op: "send", id: "m1", input: "first" })
    assert.deepStrictEqual(typesOf([yield* client.next]), ["start"])
    yield* client.ask({ op: "send", id: "m2", input: "second" })
    const queued = yield* client.next
    assert.deepStrictEqual(Object.keys(queued), ["type", "id", "run"])
    assert.deepInclude(queued, { type: "queued", id: "m2" })
    yield* script(served, ({ answer }) => answer(says("two")))
    yield* Deferred.succeed(gate, undefined)
    const frames = yield* client.until(({ id, type }) => type === "done" && id === "m2")
    const own = frames.filter(({ id }) => id === "m2")
    assert.deepStrictEqual(typesOf(own), ["start", "delta", "message", "done"])
    assert.isTrue(own.every(({ run }) => run === queued["run"]))
  })
)

it.scopedLive(
  "SO-90: each prompt that waits is told so, the same request again too, and can be cancelled by its run",
  () =>
    Effect.gen(function* () {
      const served = yield* fresh()
      yield* holdOne(served)
      const client = yield* connect(served.path)
      yield* client.ask({ op: "send", id: "m1", input: "first" })
      yield* client.next
      yield* client.ask({ op: "send", id: "m2", input: "second" })
      yield* client.ask({ op: "send", id: "m3", input: "third" })
      const [second, third] = [yield* client.next, yield* client.next]
      assert.sameMembers(
        [second, third].map(({ id, type }) => `${String(type)} ${String(id)}`),
        ["queued m2", "queued m3"]
      )
      const other = yield* connect(served.path)
      yield* other.ask({ op: "send", id: "m2", input: "second" })
      const again = yield* other.next
      assert.deepStrictEqual(
        again,
        [second, third].find(({ id }) => id === "m2")
      )
      yield* other.ask({ op: "cancel", id: again["run"] })
      assert.deepInclude((yield* other.untilType("done")).at(-1), { run: again["run"], status: "cancelled" })
    })
)

it.scopedLive("SO-91: a send that waits for another folder is told so without a run, and those behind it too", () =>
  Effect.gen(function* () {
    const served = yield* fresh()
    yield* Effect.promise(() => mkdir(join(served.root, `home/${uid}/agent/build/root/work`), { recursive: true }))
    const gate = yield* holdOne(served)
    const client = yield* connect(served.path)
    yield* client.ask({ op: "send", id: "m1", input: "first" })
    yield* client.next
    yield* client.ask({ op: "send", id: "m2", cwd: "/work", input: "second" })
    assert.deepStrictEqual(yield* client.next, { type: "queued", id: "m2" })
    yield* client.ask({ op: "send", id: "m3", cwd: "/work", input: "third" })
    assert.deepStrictEqual(yield* client.next, { type: "queued", id: "m3" })
    yield* script(served, ({ answer }) => Effect.zipRight(answer(says("two")), answer(says("three"))))
    yield* Deferred.succeed(gate, undefined)
    const frames = yield* client.until(({ id, type }) => type === "done" && id === "m3")
    assert.deepStrictEqual(
      frames.flatMap(({ id, status, type }) => (type === "done" ? [`${String(id)} ${String(status)}`] : [])),
      ["m1 ok", "m2 ok", "m3 ok"]
    )
  })
)

it.scopedLive("SO-90: a prompt that begins at once has no queued", () =>
  Effect.gen(function* () {
    const served = yield* fresh()
    yield* script(served, ({ answer }) => Effect.forEach(["a", "b", "c", "d"], (text) => answer(says(text))))
    const client = yield* connect(served.path)
    for (const id of ["a", "b", "c", "d"]) {
      yield* client.ask({ op: "send", id, input: id, session: id })
      assert.deepStrictEqual(typesOf(yield* client.untilType("done")), ["start", "delta", "message", "done"])
    }
  })
)
