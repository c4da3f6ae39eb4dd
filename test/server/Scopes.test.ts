/** Whose a session is, who may have one where, and what a model's sessions are. */
import { it } from "@effect/vitest"
import { Effect, Struct } from "effect"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert } from "vitest"
import { newSession, userTexts } from "../support/Harness.ts"
import { otherRef, ref, says } from "../support/ScriptedModel.ts"
import { connect, deltasOf, fresh, runtimeOf, script, typesOf, uid } from "./support/Served.ts"

const shared = {
  team: { read: "owner" },
  others: { read: "owner", agents: ["reviewer"] }
} as const

it.scopedLive("SC-1: a shared session lies in its space, apart from the private one of its name", () =>
  Effect.gen(function* () {
    const served = yield* fresh({ serve: { shared } })
    yield* script(served, ({ answer }) => Effect.zipRight(answer(says("one")), answer(says("two"))))
    const client = yield* connect(served.path)
    yield* client.ask({ op: "send", id: "m1", scope: "shared", shared: "team", input: "for all" })
    yield* client.untilType("done")
    yield* client.ask({ op: "send", id: "m1", input: "for me" })
    yield* client.untilType("done")
    const latest = (folder: string) => readFileSync(join(served.root, folder, "latest.md"), "utf8")
    assert.strictEqual(latest("shared/team/agent/build/session/default"), "one\n")
    assert.strictEqual(latest(`home/${uid}/agent/build/session/default`), "two\n")
  })
)

for (const [what, space] of [
  ["a space that is not configured", "nowhere"],
  ["a space whose policy does not name the agent", "others"],
  ["a space by a name that every object has", "constructor"]
] as const) {
  for (const op of ["send", "resume", "cancel"] as const) {
    it.scopedLive(`SC-4: ${op} in ${what} is EACCES, and makes nothing`, () =>
      Effect.gen(function* () {
        const served = yield* fresh({ serve: { shared } })
        const client = yield* connect(served.path)
        yield* client.ask({ op, id: "m1", scope: "shared", shared: space, input: "hi" })
        assert.deepInclude(yield* client.next, { type: "error", code: "EACCES" })
        assert.deepStrictEqual((yield* runtimeOf(served, (sessions) => sessions.list())).items, [])
      })
    )
  }
}

it.scopedLive("SO-53: a session that was not made here goes on where it is, by its id, and in no other folder", () =>
  Effect.gen(function* () {
    const served = yield* fresh()
    const { id, location } = yield* Effect.provide(newSession(served.root), served.context)
    yield* script(served, ({ answer }) => answer(says("one")))
    const client = yield* connect(served.path)
    yield* client.ask({ op: "send", id: "m1", session: id, cwd: "/", input: "hi" })
    assert.deepInclude(yield* client.next, { type: "error", id: "m1", code: "EACCES" })
    yield* client.ask({ op: "send", id: "m2", session: id, input: "hi" })
    assert.deepStrictEqual(typesOf(yield* client.untilType("done")), ["start", "delta", "message", "done"])
    const session = yield* runtimeOf(served, (sessions) => sessions.get(id))
    assert.deepStrictEqual(session.location, location)
  })
)

it.scopedLive("SO-53: another agent's session is not found, whatever is asked of it", () =>
  Effect.gen(function* () {
    const served = yield* fresh({ serve: { agents: [{ name: "plan" }] } })
    const { id } = yield* Effect.provide(newSession(served.root), served.context)
    const client = yield* connect(served.path)
    for (const request of [{ op: "send", input: "hi" }, { op: "resume" }, { op: "cancel" }]) {
      yield* client.ask({ id: "m1", session: id, ...request })
      assert.deepInclude(yield* client.next, { type: "error", code: "ENOENT" })
    }
  })
)

it.scopedLive("SO-54: a model's session asks that model, offers it no tools, and lies under the model's name", () =>
  Effect.gen(function* () {
    const served = yield* fresh({ serve: { agents: [], models: [{ ref: otherRef }] } })
    assert.strictEqual(served.path, join(served.root, "model/scripted/two.sock"))
    yield* script(served, ({ answer }) => answer(says("hello")))
    const client = yield* connect(served.path)
    yield* client.ask({ op: "send", id: "m1", input: "@no/file stays a word" })
    const frames = yield* client.untilType("done")
    assert.strictEqual(deltasOf(frames), "hello")
    assert.strictEqual(frames[0]?.["model"], "scripted/two")
    const seen = yield* script(served, ({ request }) => request)
    assert.deepStrictEqual(seen.tools, [])
    assert.strictEqual(seen.model, "two")
    assert.deepStrictEqual(userTexts(seen), ["@no/file stays a word"])
    const folder = join(served.root, `home/${uid}/model/two.d/session/default`)
    assert.strictEqual(readFileSync(join(folder, "latest.md"), "utf8"), "hello\n")
  })
)

it.scopedLive("SO-54: an alias that stands for another model now asks that one", () =>
  Effect.gen(function* () {
    const served = yield* fresh({ serve: { agents: [], models: [{ alias: "fast", ref: otherRef }] } })
    yield* script(served, ({ answer }) => Effect.zipRight(answer(says("one")), answer(says("two"))))
    const client = yield* connect(served.path)
    yield* client.ask({ op: "send", id: "m1", input: "hi" })
    yield* client.untilType("done")
    const { items } = yield* runtimeOf(served, (sessions) => sessions.list())
    const id = items[0]?.id
    if (id === undefined) return yield* Effect.dieMessage("no session")
    yield* runtimeOf(served, (sessions) => sessions.switchModel(id, ref))
    yield* client.ask({ op: "send", id: "m2", input: "hi" })
    yield* client.untilType("done")
    const seen = yield* script(served, ({ request }) => Effect.replicateEffect(request, 2))
    assert.deepStrictEqual(seen.map(Struct.get("model")), ["two", "two"])
  })
)

it.scopedLive("FL-6: when a client is told that a run is done, its files say so", () =>
  Effect.gen(function* () {
    const served = yield* fresh()
    yield* script(served, ({ answer }) => answer(says("Hello")))
    const client = yield* connect(served.path)
    yield* client.ask({ op: "send", id: "m1", input: "hi" })
    const frames = yield* client.untilType("done")
    const file = (name: string) =>
      readFileSync(join(served.root, `home/${uid}/agent/build/session/default`, name), "utf8")
    assert.strictEqual(file("latest.md"), `${deltasOf(frames)}\n`)
    assert.strictEqual(file("state"), "done\n")
    yield* client.ask({ op: "resume" })
    const rows = yield* client.untilType("done")
    assert.strictEqual(file("events.jsonl"), rows.map((row) => `${JSON.stringify(row)}\n`).join(""))
  })
)
