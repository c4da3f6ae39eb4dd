/** `send`: from a request to the end of its run, over a real socket. */
import { it } from "@effect/vitest"
import { Deferred, Effect, Stream } from "effect"
import { assert } from "vitest"
import { existsSync } from "node:fs"
import { mkdir, rm } from "node:fs/promises"
import { join } from "node:path"
import { userTexts } from "../support/Harness.ts"
import { calls, callParts, failure, held, says, streams, textParts, finish } from "../support/ScriptedModel.ts"
import { connect, deltasOf, fresh, runtimeOf, script, textOf, typesOf, uid, holdOne } from "./support/Served.ts"

it.scopedLive("FR-7: start, deltas, message and done, in this order, and the deltas make the message", () =>
  Effect.gen(function* () {
    const served = yield* fresh()
    const gate = yield* Deferred.make<void>()
    yield* script(served, ({ answer }) =>
      answer(held(textParts("t", "Hel").slice(0, 2), gate, [...textParts("t", "lo").slice(1), finish()]))
    )
    const client = yield* connect(served.path)
    yield* client.ask({ op: "send", id: "m1", input: "hi" })
    const before = yield* client.untilType("delta")
    assert.strictEqual(deltasOf(before), "Hel")
    yield* Deferred.succeed(gate, undefined)
    const frames = [...before, ...(yield* client.untilType("done"))]
    assert.deepStrictEqual(typesOf(frames), ["start", "delta", "message", "done"])
    assert.strictEqual(deltasOf(frames), "Hello")
    assert.strictEqual(textOf(frames.find(({ type }) => type === "message")), "Hello")
    assert.isTrue(frames.every(({ id, run }) => id === "m1" && run === frames[0]?.["run"]))
    assert.match(String(frames[0]?.["run"]), /^ctx-[0-9a-f]{32}$/)
    assert.strictEqual(frames.at(-1)?.["status"], "ok")
  })
)

it.scopedLive("FI-620: the message of a run whose answer is not whole has the sentence that says so", () =>
  Effect.gen(function* () {
    const served = yield* fresh()
    yield* script(served, ({ answer }) => answer(streams(...textParts("t", "Half"), finish("length"))))
    const client = yield* connect(served.path)
    yield* client.ask({ op: "send", id: "m1", input: "hi" })
    const frames = yield* client.untilType("done")
    const message = frames.find(({ type }) => type === "message")
    assert.strictEqual(message?.["problem"], "The answer was cut off at the model's output limit, after 5 tokens.")
    assert.strictEqual(frames.at(-1)?.["status"], "ok")
  })
)

it.scopedLive("SO-20: frames of a run carry the ids of their rows", () =>
  Effect.gen(function* () {
    const served = yield* fresh()
    yield* script(served, ({ answer }) => answer(says("yes")))
    const client = yield* connect(served.path)
    yield* client.ask({ op: "send", id: "m1", input: "hi" })
    const frames = yield* client.untilType("done")
    yield* client.ask({ op: "resume" })
    const rows = yield* client.until(({ seq, type }) => seq !== undefined && type === "done")
    const ids = rows.flatMap(({ id, run }) => (run === undefined ? [] : [id]))
    assert.deepStrictEqual(
      frames.flatMap(({ event }) => (event === undefined ? [] : [event])),
      ids
    )
  })
)

it.scopedLive("FR-7: the texts of a run's steps are set apart alike in deltas, message and latest.md", () =>
  Effect.gen(function* () {
    const served = yield* fresh()
    yield* script(served, ({ answer }) =>
      Effect.zipRight(
        answer(calls(textParts("t", "first"), callParts("c", "no_such_tool", {}))),
        answer(says("second"))
      )
    )
    const client = yield* connect(served.path)
    yield* client.ask({ op: "send", id: "m1", input: "hi" })
    const frames = yield* client.untilType("done")
    const message = textOf(frames.find(({ type }) => type === "message"))
    assert.strictEqual(message, "first\n\nsecond")
    assert.strictEqual(deltasOf(frames), message)
    const error = frames.find(({ type }) => type === "error")
    assert.strictEqual(error?.["recoverable"], true)
  })
)

it.scopedLive("FR-7: a message longer than a frame may be is cut and says so, and the deltas are whole", () =>
  Effect.gen(function* () {
    const served = yield* fresh()
    const text = "häß😀 ".repeat(60_000)
    yield* script(served, ({ answer }) => answer(says(text)))
    const client = yield* connect(served.path)
    yield* client.ask({ op: "send", id: "m1", input: "hi" })
    const frames = yield* client.untilType("done")
    const message = frames.find(({ type }) => type === "message")
    assert.strictEqual(message?.["truncated"], true)
    assert.strictEqual(message?.["length"], text.length)
    assert.isTrue(text.startsWith(textOf(message)))
    assert.isAtMost(Buffer.byteLength(textOf(message)), 256 * 1024)
    assert.isTrue(deltasOf(frames) === text)
  })
)

it.scopedLive("DC-20: what is sent while a run is active waits, and has a start of its own when it begins", () =>
  Effect.gen(function* () {
    const served = yield* fresh()
    const gate = yield* holdOne(served)
    const [first, second] = [yield* connect(served.path), yield* connect(served.path)]
    yield* first.ask({ op: "send", id: "m1", input: "first" })
    yield* first.untilType("start")
    yield* second.ask({ op: "send", id: "m2", input: "second" })
    yield* script(served, ({ answer, request }) => Effect.zipRight(request, answer(says("two"))))
    yield* Deferred.succeed(gate, undefined)
    assert.strictEqual(deltasOf(yield* first.untilType("done")), "one")
    const frames = yield* second.untilType("done")
    assert.deepStrictEqual(typesOf(frames), ["start", "delta", "message", "done"])
    assert.strictEqual(deltasOf(frames), "two")
    const { userTexts: texts } = yield* script(served, ({ request }) =>
      Effect.map(request, (seen) => ({ userTexts: userTexts(seen) }))
    )
    assert.deepStrictEqual(texts, ["first", "second"])
  })
)

it.scopedLive("DC-20: prompts sent one after the other on one connection run in that order", () =>
  Effect.gen(function* () {
    const served = yield* fresh()
    yield* script(served, ({ answer }) => Effect.forEach(["a", "b", "c", "d"], (text) => answer(says(text))))
    const client = yield* connect(served.path)
    yield* client.write(["a", "b", "c", "d"].map((id) => `${JSON.stringify({ op: "send", id, input: id })}\n`).join(""))
    const seen = yield* client.until(({ id, type }) => type === "done" && id === "d")
    assert.deepStrictEqual(
      seen.flatMap(({ id, type }) => (type === "done" ? [id] : [])),
      ["a", "b", "c", "d"]
    )
    assert.strictEqual(deltasOf(seen), "abcd")
  })
)

it.scopedLive("DC-20: a full inbox is EBUSY, and nothing of the prompt is kept", () =>
  Effect.gen(function* () {
    const served = yield* fresh({ runtime: { inboxLimit: 1 } })
    const client = yield* connect(served.path)
    yield* client.ask({ op: "send", id: "m1", input: "first" })
    yield* client.untilType("start")
    yield* client.ask({ op: "send", id: "m2", input: "second" })
    yield* client.ask({ op: "send", id: "m3", input: "third" })
    const refused = (yield* client.untilType("error")).at(-1)
    assert.deepInclude(refused, { id: "m3", code: "EBUSY" })
    const waiting = yield* runtimeOf(served, (sessions) =>
      Effect.gen(function* () {
        const { items } = yield* sessions.list()
        return yield* Effect.forEach(items, ({ id }) => sessions.inbox(id))
      })
    )
    assert.deepStrictEqual(
      waiting.flat().map(({ prompt }) => prompt.client?.id),
      ["m2"]
    )
  })
)

it.scopedLive("DC-20: requests that wait for a session to come to rest are bounded, then EBUSY", () =>
  Effect.gen(function* () {
    const served = yield* fresh({ serve: { backlog: 1 } })
    yield* Effect.promise(() => mkdir(join(served.root, `home/${uid}/agent/build/root/work`), { recursive: true }))
    const client = yield* connect(served.path)
    yield* client.ask({ op: "send", id: "m1", input: "first" })
    yield* client.untilType("start")
    // This one waits for the run, and the next behind it.
    yield* client.ask({ op: "send", id: "m2", cwd: "/work", input: "second" })
    yield* client.ask({ op: "send", id: "m3", input: "third" })
    yield* client.ask({ op: "send", id: "m4", input: "fourth" })
    const refused = (yield* client.untilType("error")).at(-1)
    assert.deepInclude(refused, { id: "m4", code: "EBUSY" })
  })
)

it.scopedLive("CW-5: a refused folder writes nothing, and makes no session", () =>
  Effect.gen(function* () {
    const served = yield* fresh()
    const client = yield* connect(served.path)
    yield* client.ask({ op: "send", id: "m1", cwd: "/nowhere", input: "hi" })
    assert.deepInclude(yield* client.next, { type: "error", id: "m1", code: "ENOENT" })
    const { items } = yield* runtimeOf(served, (sessions) => sessions.list())
    assert.deepStrictEqual(items, [])
  })
)

it.scopedLive("CW-7: a prompt for another folder moves the session there, when its runs are done", () =>
  Effect.gen(function* () {
    const served = yield* fresh()
    const world = join(served.root, `home/${uid}/agent/build/root`)
    yield* Effect.promise(() => mkdir(join(world, "work"), { recursive: true }))
    const gate = yield* holdOne(served)
    const client = yield* connect(served.path)
    yield* client.ask({ op: "send", id: "m1", input: "first" })
    yield* client.untilType("start")
    yield* client.ask({ op: "send", id: "m2", cwd: "/work", input: "second" })
    yield* client.ask({ op: "ping" })
    yield* client.untilType("pong")
    const before = yield* runtimeOf(served, (sessions) => sessions.list())
    assert.deepStrictEqual(
      before.items.map(({ location }) => location.directory),
      [world]
    )
    yield* script(served, ({ answer }) => answer(says("two")))
    yield* Deferred.succeed(gate, undefined)
    yield* client.until(({ id, type }) => type === "done" && id === "m2")
    const after = yield* runtimeOf(served, (sessions) => sessions.list())
    assert.deepStrictEqual(
      after.items.map(({ location, root }) => [location.directory, root]),
      [[join(world, "work"), world]]
    )
  })
)

it.scopedLive("SO-32: after failed runs the next prompts that wait are run", () =>
  Effect.gen(function* () {
    const served = yield* fresh()
    const gate = yield* Deferred.make<void>()
    yield* script(served, ({ answer }) =>
      answer(Stream.concat(held([], gate), Stream.fail(failure("the model is out of order"))))
    )
    const client = yield* connect(served.path)
    yield* client.ask({ op: "send", id: "m1", input: "first" })
    yield* client.untilType("start")
    yield* client.ask({ op: "send", id: "m2", input: "second" })
    yield* client.ask({ op: "send", id: "m3", input: "third" })
    // A refused repetition shows that the third is on disk.
    yield* client.ask({ op: "send", id: "m3", input: "other" })
    yield* client.untilType("error")
    yield* script(served, ({ answer }) =>
      Effect.zipRight(answer(Stream.fail(failure("it is out of order still"))), answer(says("three")))
    )
    yield* Deferred.succeed(gate, undefined)
    // An end is told when the files tell of it, so the next run's start may come before.
    let open = 3
    const frames = yield* client.until(({ type }) => type === "done" && --open === 0)
    const ended = (run: string) => {
      const own = frames.filter(({ id }) => id === run)
      return [...typesOf(own), own.at(-1)?.["status"]]
    }
    assert.deepStrictEqual(ended("m1"), ["error", "done", "error"])
    assert.deepStrictEqual(ended("m2"), ["start", "error", "done", "error"])
    assert.deepStrictEqual(ended("m3"), ["start", "delta", "message", "done", "ok"])
  })
)

it.scopedLive("SO-21: a failed run has an error with a code, no message, and done with error", () =>
  Effect.gen(function* () {
    const served = yield* fresh()
    yield* script(served, ({ answer }) =>
      answer(Stream.concat(streams(...textParts("t", "half").slice(0, 2)), Stream.fail(failure("no more"))))
    )
    const client = yield* connect(served.path)
    yield* client.ask({ op: "send", id: "m1", input: "first" })
    const frames = yield* client.untilType("done")
    assert.deepStrictEqual(typesOf(frames), ["start", "delta", "error", "done"])
    assert.deepInclude(frames.at(-2), { code: "EIO", id: "m1", run: frames[0]?.["run"] })
    assert.strictEqual(frames.at(-1)?.["status"], "error")
  })
)

it.scopedLive("SO-34: an agent that is not there is refused with a sentence, and no session is made", () =>
  Effect.gen(function* () {
    const served = yield* fresh({ serve: { agents: [{ name: "ghost" }] } })
    const client = yield* connect(served.path)
    yield* client.ask({ op: "send", id: "m1", input: "first" })
    const refused = yield* client.next
    assert.deepInclude(refused, { type: "error", id: "m1", code: "EINVAL" })
    assert.include(String(refused["message"]), "ghost")
    const { items } = yield* runtimeOf(served, (sessions) => sessions.list())
    assert.deepStrictEqual(items, [])
  })
)

it.scopedLive("FL-1: the world of an agent is made anew when it was removed, and its sessions stay", () =>
  Effect.gen(function* () {
    const served = yield* fresh()
    yield* script(served, ({ answer }) => Effect.zipRight(answer(says("one")), answer(says("two"))))
    const client = yield* connect(served.path)
    yield* client.ask({ op: "send", id: "m1", input: "first" })
    yield* client.untilType("done")
    const world = join(served.root, `home/${uid}/agent/build/root`)
    yield* Effect.promise(() => rm(world, { recursive: true }))
    yield* client.ask({ op: "send", id: "m2", input: "second" })
    assert.strictEqual((yield* client.untilType("done")).at(-1)?.["status"], "ok")
    assert.isTrue(existsSync(world))
    const { items } = yield* runtimeOf(served, (sessions) => sessions.list())
    assert.lengthOf(items, 1)
  })
)
