/** Temp sessions: in memory, for as long as somebody is connected, and nowhere else. */
import { it } from "@effect/vitest"
import { Deferred, Effect, Stream } from "effect"
import { readFileSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { assert } from "vitest"
import { userTexts } from "../support/Harness.ts"
import { held, says, textParts } from "../support/ScriptedModel.ts"
import { connect, deltasOf, fresh, runtimeOf, script, typesOf, type Served } from "./support/Served.ts"

/** Every file below the root that holds the text, by bytes. */
const holding = (root: string, text: string): ReadonlyArray<string> =>
  readdirSync(root, { recursive: true, withFileTypes: true }).flatMap((entry) => {
    const path = join(entry.parentPath, entry.name)
    return entry.isFile() && readFileSync(path).includes(text) ? [path] : []
  })

const paths = (root: string): ReadonlyArray<string> =>
  readdirSync(root, { recursive: true })
    .map(String)
    .filter((path) => !path.includes("sqlite"))
    .sort()

const request = (served: Served) => script(served, (model) => model.request)

it.scopedLive("SC-2: a temp session answers as others do, remembers, and leaves nothing on disk and in no list", () =>
  Effect.gen(function* () {
    const served = yield* fresh()
    yield* script(served, ({ answer }) => Effect.zipRight(answer(says("one")), answer(says("two"))))
    const before = paths(served.root)
    const client = yield* connect(served.path)
    yield* client.ask({ op: "send", id: "m1", scope: "temp", input: "the secret word is barley" })
    const frames = yield* client.untilType("done")
    assert.deepStrictEqual(typesOf(frames), ["start", "delta", "message", "done"])
    yield* request(served)
    yield* client.ask({ op: "send", id: "m2", scope: "temp", input: "which word was it?" })
    yield* client.untilType("done")
    assert.deepStrictEqual(userTexts(yield* request(served)), ["the secret word is barley", "which word was it?"])
    assert.deepStrictEqual(holding(served.root, "barley"), [])
    assert.deepStrictEqual(paths(served.root), before)
    assert.deepStrictEqual((yield* runtimeOf(served, (sessions) => sessions.list())).items, [])
    yield* client.ask({ op: "resume", scope: "temp" })
    const rows = yield* client.until(({ run, type }) => type === "done" && run !== frames[0]?.["run"])
    assert.deepStrictEqual(
      rows.flatMap(({ scope, type }) => (type === "start" ? [scope] : [])),
      ["temp", "temp"]
    )
  })
)

it.scopedLive("SC-1: a temp session and a private one of the same name are two", () =>
  Effect.gen(function* () {
    const served = yield* fresh()
    yield* script(served, ({ answer }) => Effect.zipRight(answer(says("one")), answer(says("two"))))
    const client = yield* connect(served.path)
    yield* client.ask({ op: "send", id: "m1", scope: "temp", input: "in memory" })
    yield* client.untilType("done")
    yield* request(served)
    yield* client.ask({ op: "send", id: "m1", input: "on disk" })
    yield* client.untilType("done")
    assert.deepStrictEqual(userTexts(yield* request(served)), ["on disk"])
  })
)

it.scopedLive("DC-17: the run of a temp session is cancelled when its connection is gone", () =>
  Effect.gen(function* () {
    const served = yield* fresh()
    const stopped = yield* Deferred.make<void>()
    yield* script(served, ({ answer }) =>
      Effect.flatMap(Deferred.make<void>(), (gate) =>
        answer(Stream.ensuring(held(textParts("t", "hm").slice(0, 2), gate), Deferred.succeed(stopped, undefined)))
      )
    )
    const client = yield* connect(served.path)
    yield* client.ask({ op: "send", id: "m1", scope: "temp", input: "hi" })
    yield* client.untilType("delta")
    yield* client.leave
    yield* Deferred.await(stopped)
    const other = yield* connect(served.path)
    yield* script(served, ({ answer }) => answer(says("two")))
    yield* request(served)
    yield* other.ask({ op: "send", id: "m2", scope: "temp", input: "anybody?" })
    assert.strictEqual(deltasOf(yield* other.untilType("done")), "two")
    // The session was the connection's: this one is new.
    assert.deepStrictEqual(userTexts(yield* request(served)), ["anybody?"])
  })
)

it.scopedLive(
  "SO-56: a temp session stays while another connection uses it, and only the runs of the one that left end",
  () =>
    Effect.gen(function* () {
      const served = yield* fresh()
      yield* script(served, ({ answer }) => answer(says("one")))
      const [leaving, staying] = [yield* connect(served.path), yield* connect(served.path)]
      yield* leaving.ask({ op: "send", id: "m1", scope: "temp", input: "first" })
      yield* leaving.untilType("done")
      yield* request(served)
      yield* script(served, ({ answer }) =>
        Effect.flatMap(Deferred.make<void>(), (gate) => answer(held(textParts("t", "hm").slice(0, 2), gate)))
      )
      yield* leaving.ask({ op: "send", id: "m2", scope: "temp", input: "second" })
      yield* leaving.untilType("delta")
      yield* request(served)
      yield* script(served, ({ answer }) => answer(says("three")))
      yield* staying.ask({ op: "send", id: "m3", scope: "temp", input: "third" })
      yield* staying.ask({ op: "ping" })
      yield* staying.untilType("pong")
      yield* leaving.leave
      assert.strictEqual(deltasOf(yield* staying.untilType("done")), "three")
      assert.deepStrictEqual(
        userTexts(yield* request(served)).filter((text) => text !== "second"),
        ["first", "third"]
      )
    })
)
