/** What a client that follows a run reads beside its text, and the lists of sessions. */
import { it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { assert } from "vitest"
import { callParts, finish, held, says, streams, textParts } from "../support/ScriptedModel.ts"
import { connect, deltasOf, fresh, script, textOf, typesOf, type Frame } from "./support/Served.ts"

const thought = (id: string, ...pieces: ReadonlyArray<string>) => [
  { type: "reasoning-start" as const, id },
  ...pieces.map((delta) => ({ type: "reasoning-delta" as const, id, delta })),
  { type: "reasoning-end" as const, id }
]

const thoughts = (frames: ReadonlyArray<Frame>) =>
  frames.map(({ text, type }) => (type === "reasoning_delta" ? String(text) : "")).join("")

it.scopedLive("SO-85: reasoning comes as it is made, apart from the text, and again to who asks again", () =>
  Effect.gen(function* () {
    const served = yield* fresh()
    const gate = yield* Deferred.make<void>()
    yield* script(served, ({ answer }) =>
      answer(
        held([...thought("r", "hm, ", "so")], gate, [...thought("r2", "then"), ...textParts("t", "answer"), finish()])
      )
    )
    const client = yield* connect(served.path)
    yield* client.ask({ op: "send", id: "m1", input: "hi" })
    const before = yield* client.until(({ text, type }) => type === "reasoning_delta" && String(text).endsWith("so"))
    yield* Deferred.succeed(gate, undefined)
    const frames = [...before, ...(yield* client.untilType("done"))]
    assert.strictEqual(thoughts(frames), "hm, so\n\nthen")
    assert.strictEqual(deltasOf(frames), "answer")
    assert.strictEqual(textOf(frames.find(({ type }) => type === "message")), "answer")
    yield* client.ask({ op: "send", id: "m1", input: "hi" })
    const again = yield* client.untilType("done")
    assert.deepStrictEqual(typesOf(again), ["start", "reasoning_delta", "delta", "message", "done"])
    assert.strictEqual(thoughts(again), "hm, so\n\nthen")
  })
)

it.scopedLive("SO-84: calls and results of tools come as frames with the ids of their rows, in order", () =>
  Effect.gen(function* () {
    const served = yield* fresh()
    yield* script(served, ({ answer }) =>
      Effect.zipRight(
        answer(
          streams(
            ...callParts("c1", "glob", { pattern: "*" }),
            ...callParts("c2", "read", { path: "missing.txt" }),
            finish("tool-calls")
          )
        ),
        answer(says("done"))
      )
    )
    const client = yield* connect(served.path)
    yield* client.ask({ op: "send", id: "m1", input: "hi" })
    const frames = yield* client.untilType("done")
    const calls = frames.filter(({ type }) => type === "tool_call")
    assert.deepStrictEqual(
      calls.map(({ input, name, tool_call_id }) => ({ input, name, tool_call_id })),
      [
        { input: { pattern: "*" }, name: "glob", tool_call_id: "c1" },
        { input: { path: "missing.txt" }, name: "read", tool_call_id: "c2" }
      ]
    )
    const result = frames.find(({ type }) => type === "tool_result")
    assert.deepInclude(result, { id: "m1", tool_call_id: "c1", name: "glob" })
    const error = frames.find(({ type }) => type === "error")
    assert.deepInclude(error, { tool: "read", tool_call_id: "c2", recoverable: true })
    yield* client.ask({ op: "resume" })
    const rows = yield* client.until(({ seq, type }) => seq !== undefined && type === "done")
    const ids = rows.flatMap(({ id, type }) => (type === "tool_call" || type === "tool_result" ? [id] : []))
    assert.deepStrictEqual(
      frames.flatMap(({ event, type }) => (type === "tool_call" || type === "tool_result" ? [event] : [])),
      ids
    )
  })
)

it.scopedLive("SO-93: list gives the sessions of a scope, the newest first, page by page, each once", () =>
  Effect.gen(function* () {
    const served = yield* fresh({ serve: { shared: { lab: { read: "owner" } } } })
    const client = yield* connect(served.path)
    const names = ["a", "b", "c", "d", "e"]
    for (const session of names) {
      yield* script(served, ({ answer }) => answer(says("one")))
      yield* client.ask({ op: "send", id: "m1", session, input: "hi" })
      yield* client.untilType("done")
    }
    yield* script(served, ({ answer }) => answer(says("one")))
    yield* client.ask({ op: "send", id: "m1", session: "s", scope: "shared", shared: "lab", input: "hi" })
    yield* client.untilType("done")
    const pages: Array<ReadonlyArray<unknown>> = []
    for (let after: unknown; pages.length < 4;) {
      yield* client.ask({ op: "list", id: "l", limit: 2, ...(after === undefined ? {} : { after }) })
      const { id, next, sessions, type } = yield* client.next
      assert.deepStrictEqual([type, id], ["list", "l"])
      pages.push((sessions as ReadonlyArray<Frame>).map(({ session }) => session))
      if (next === undefined) break
      after = next
    }
    assert.deepStrictEqual(pages, [["e", "d"], ["c", "b"], ["a"]])
    yield* client.ask({ op: "list", scope: "shared", shared: "lab" })
    const { sessions } = yield* client.next
    const [item, ...more] = sessions as ReadonlyArray<Frame>
    assert.deepInclude(item, { session: "s", state: "idle", waiting: 0, cwd: "/" })
    assert.deepStrictEqual(more, [])
  })
)

it.scopedLive("SO-94: a list or status with a field that is wrong is refused with a code", () =>
  Effect.gen(function* () {
    const served = yield* fresh()
    const client = yield* connect(served.path)
    for (const [request, code] of [
      [{ op: "list", limit: 0 }, "EINVAL"],
      [{ op: "list", limit: 101 }, "EINVAL"],
      [{ op: "list", limit: "5" }, "EINVAL"],
      [{ op: "list", after: "" }, "EINVAL"],
      [{ op: "list", after: "no cursor" }, "EINVAL"],
      [{ op: "list", after: "bm90IGEgY3Vyc29y" }, "EINVAL"],
      [{ op: "list", scope: "temp" }, "EINVAL"],
      [{ op: "list", scope: "shared" }, "EINVAL"],
      [{ op: "list", shared: "lab" }, "EINVAL"],
      [{ op: "list", scope: "shared", shared: "lab" }, "EACCES"],
      [{ op: "list", id: 5 }, "EINVAL"],
      [{ op: "status", id: "not a name" }, "EINVAL"]
    ] as const) {
      yield* client.ask(request)
      assert.deepInclude(yield* client.next, { type: "error", code }, JSON.stringify(request))
    }
    yield* client.ask({ op: "list", after: "bm90IGEgY3Vyc29y" })
    const frame = yield* client.next
    assert.match(String("message" in frame ? frame.message : ""), /^after: use "next"/)
    yield* client.ask({ op: "list" })
    assert.deepStrictEqual(yield* client.next, { type: "list", sessions: [] })
  })
)
