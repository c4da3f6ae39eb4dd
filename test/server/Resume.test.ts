/** `resume`: what came after a row that a client has, then the run that is under way. */
import { mkdir } from "node:fs/promises"
import { join } from "node:path"
import { Tool } from "@effect/ai"
import { it } from "@effect/vitest"
import { Context, Deferred, Effect, Schema } from "effect"
import { assert } from "vitest"
import { HostTools } from "../../packages/core/src/tool/HostTools.ts"
import { define } from "../../packages/core/src/tool/ToolDefinition.ts"
import type { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { callParts, calls, finish, held, otherRef, says, textParts } from "../support/ScriptedModel.ts"
import {
  type Client,
  connect,
  deltasOf,
  type Frame,
  fresh,
  holdOne,
  runtimeOf,
  script,
  type Served,
  textOf,
  typesOf,
  uid
} from "./support/Served.ts"

/** All rows of a session in which nothing runs. */
const rowsOf = Effect.fnUntraced(function* (client: Client, after?: unknown, session = "default") {
  yield* client.ask({ op: "resume", session, ...(after === undefined ? {} : { after }) })
  yield* client.ask({ op: "ping", id: "end" })
  const frames = yield* client.untilType("pong")
  return frames.slice(0, -1)
})

/** A session with runs of several kinds, moves and another model in between. */
const eventful = Effect.fnUntraced(function* (served: Served, client: Client) {
  yield* Effect.promise(() => mkdir(join(served.root, `home/${uid}/agent/build/root/work`), { recursive: true }))
  const model = (use: Parameters<typeof script>[1]) => script(served, use)
  yield* model(({ answer }) =>
    Effect.all([
      answer(says("one")),
      answer(calls(textParts("t", "two"), callParts("c", "no_such_tool", { a: 1 }))),
      answer(says("three")),
      answer(says("four")),
      answer(says("five"))
    ])
  )
  const send = (id: string, more = {}) =>
    Effect.zipRight(
      client.ask({ op: "send", id, input: id, ...more }),
      client.until((frame) => frame["type"] === "done")
    )
  yield* send("m1")
  yield* send("m2", { cwd: "/work" })
  const { items } = yield* runtimeOf(served, (sessions) => sessions.list())
  const [session] = items
  if (session === undefined) return yield* Effect.dieMessage("no session")
  yield* runtimeOf(served, (sessions) => sessions.switchModel(session.id, otherRef))
  yield* send("m3", { cwd: "/work" })
  yield* runtimeOf(served, (sessions) => sessions.rename(session.id, "a title"))
  // One that no client sent.
  yield* runtimeOf(served, (sessions) =>
    Effect.zipRight(sessions.prompt({ sessionID: session.id, prompt: { text: "by hand" } }), sessions.wait(session.id))
  )
  return session
})

it.scopedLive("IX-6: after any row come exactly the later rows, as they are when all are told", () =>
  Effect.gen(function* () {
    const served = yield* fresh()
    const client = yield* connect(served.path)
    yield* eventful(served, client)
    const all = yield* rowsOf(client)
    assert.deepStrictEqual(
      all.flatMap(({ status, type }) => (type === "done" ? [status] : [])),
      ["ok", "ok", "ok", "ok"]
    )
    for (const [at, row] of all.entries()) {
      assert.deepStrictEqual(
        yield* rowsOf(client, row["id"]),
        all.slice(at + 1),
        `after row ${at}, ${String(row["type"])}`
      )
    }
  })
)

for (const [what, request, code] of [
  ["a row that is none of this session", { after: "evt_nothing" }, "ENOENT"],
  ["a row's place that its event has not", { after: "EVENT.3" }, "ENOENT"],
  ["a cursor that is none", { after: "no row/" }, "EINVAL"],
  ["a session that is not there", { session: "other" }, "ENOENT"],
  ["a session's id that is not there", { session: "ses_01" }, "ENOENT"]
] as const) {
  it.scopedLive(`DC-6: ${what} is ${code}`, () =>
    Effect.gen(function* () {
      const served = yield* fresh()
      yield* script(served, ({ answer }) => answer(says("one")))
      const client = yield* connect(served.path)
      yield* client.ask({ op: "send", id: "m1", input: "hi" })
      yield* client.untilType("done")
      const [first] = yield* rowsOf(client)
      const named = JSON.stringify(request).replace("EVENT", String(first?.["id"]))
      yield* client.write(`${JSON.stringify({ op: "resume", ...JSON.parse(named) })}\n`)
      assert.deepInclude(yield* client.next, { type: "error", code })
    })
  )
}

it.scopedLive("SO-108, SO-37: what is answered at once is answered in order: a ping marks the end of a replay", () =>
  Effect.gen(function* () {
    const served = yield* fresh()
    yield* script(served, ({ answer }) => answer(says("one")))
    const client = yield* connect(served.path)
    yield* client.ask({ op: "send", id: "m1", input: "hi" })
    yield* client.untilType("done")
    const requests = [
      { op: "resume" },
      { op: "ping", id: "a" },
      { op: "resume", session: "none" },
      { op: "ping", id: "b" }
    ]
    yield* client.write(requests.map((request) => `${JSON.stringify(request)}\n`).join(""))
    const frames = yield* client.until(({ id, type }) => type === "pong" && id === "b")
    assert.deepStrictEqual(typesOf(frames).slice(-4), ["done", "pong", "error", "pong"])
  })
)

it.scopedLive("IX-6: a run that is under way is followed to its end, with all of its text from the start", () =>
  Effect.gen(function* () {
    const served = yield* fresh()
    const gate = yield* Deferred.make<void>()
    yield* script(served, ({ answer }) =>
      Effect.zipRight(
        answer(calls(textParts("t", "first"), callParts("c", "no_such_tool", {}))),
        answer(held(textParts("t", "sec").slice(0, 2), gate, [...textParts("t", "ond").slice(1), finish()]))
      )
    )
    const sender = yield* connect(served.path)
    yield* sender.ask({ op: "send", id: "m1", input: "hi" })
    yield* sender.until(({ text }) => String(text).endsWith("sec"))
    const client = yield* connect(served.path)
    yield* client.ask({ op: "resume" })
    // The first step is told before the run is over; what was missed of the second comes with its end.
    const before = yield* client.untilType("delta")
    assert.strictEqual(deltasOf(before), "first")
    yield* Deferred.succeed(gate, undefined)
    const frames = [...before, ...(yield* client.untilType("done"))]
    assert.strictEqual(deltasOf(frames), "first\n\nsecond")
    assert.strictEqual(textOf(frames.find(({ type }) => type === "message")), "first\n\nsecond")
    const rows = frames.filter(({ seq }) => seq !== undefined)
    yield* client.ask({ op: "resume" })
    assert.deepStrictEqual(yield* client.untilType("done"), rows)
  })
)

it.scopedLive("IX-6: deltas of a step that begins while a client follows are told as they come", () =>
  Effect.gen(function* () {
    const served = yield* fresh()
    const [first, second] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
    yield* script(served, ({ answer }) =>
      Effect.zipRight(
        answer(held([], first, [...callParts("c", "no_such_tool", {}), finish("tool-calls")])),
        answer(held(textParts("t", "sec").slice(0, 2), second, [...textParts("t", "ond").slice(1), finish()]))
      )
    )
    const sender = yield* connect(served.path)
    yield* sender.ask({ op: "send", id: "m1", input: "hi" })
    yield* sender.untilType("start")
    const client = yield* connect(served.path)
    yield* client.ask({ op: "resume" })
    yield* client.untilType("start")
    // The follower listens by now, or else the ping would not be answered after its replay.
    yield* client.ask({ op: "ping" })
    yield* client.untilType("pong")
    yield* Deferred.succeed(first, undefined)
    yield* client.untilType("tool_call")
    yield* Deferred.succeed(second, undefined)
    assert.strictEqual(deltasOf(yield* client.untilType("done")), "second")
  })
)

it.scopedLive("IX-6: the row before a live run's end leaves its done to be told, and its text", () =>
  Effect.gen(function* () {
    const served = yield* fresh()
    const gate = yield* holdOne(served)
    const sender = yield* connect(served.path)
    yield* sender.ask({ op: "send", id: "m1", input: "hi" })
    const [start] = yield* sender.untilType("start")
    const client = yield* connect(served.path)
    yield* client.ask({ op: "resume", after: start?.["event"] })
    yield* client.ask({ op: "ping" })
    yield* client.untilType("pong")
    yield* Deferred.succeed(gate, undefined)
    const frames = yield* client.untilType("done")
    assert.deepStrictEqual(typesOf(frames), ["delta", "message", "done"])
    assert.strictEqual(deltasOf(frames), "one")
  })
)

it.scopedLive("SO-38: where a prompt waits to be run, the answer goes on to the end of that run", () =>
  Effect.gen(function* () {
    const served = yield* fresh()
    yield* script(served, ({ answer }) => Effect.zipRight(answer(says("one")), answer(says("two"))))
    const client = yield* connect(served.path)
    yield* client.ask({ op: "send", id: "m1", input: "hi" })
    yield* client.untilType("done")
    const { items } = yield* runtimeOf(served, (sessions) => sessions.list())
    const sessionID = items[0]?.id
    if (sessionID === undefined) return yield* Effect.dieMessage("no session")
    const last = (yield* rowsOf(client)).at(-1)?.["id"]
    // Admitted by somebody who runs nothing.
    yield* runtimeOf(served, (sessions) => sessions.prompt({ sessionID, prompt: { text: "more" }, resume: false }))
    yield* client.ask({ op: "resume", after: last })
    const frames = yield* client.untilType("done")
    assert.strictEqual(deltasOf(frames), "two")
  })
)

it.scopedLive("IX-6: clients that resume again and again while events arrive get each row once, in order", () =>
  Effect.gen(function* () {
    const served = yield* fresh()
    const steps = Array.from({ length: 8 }, (_, step) => `c${step}`)
    const gates = new Map<string, Deferred.Deferred<void>>()
    for (const call of steps) gates.set(call, yield* Deferred.make<void>())
    const note = define(Tool.make("note", { success: Schema.String }), { handler: () => Effect.succeed("noted") })
    yield* Context.get(served.context, HostTools).register([note])
    yield* script(served, ({ answer }) =>
      Effect.zipRight(
        Effect.forEach(steps, (call) =>
          answer(held(callParts(call, "note", {}), gates.get(call)!, [finish("tool-calls")]))
        ),
        answer(says("done"))
      )
    )
    const sender = yield* connect(served.path)
    yield* sender.ask({ op: "send", id: "m1", input: "hi" })
    const [start] = yield* sender.untilType("start")
    const rows: Array<Frame> = []
    // Each client comes while the model still speaks behind a call, whose result is the last event of the log.
    for (const [step, call] of [...steps, "end"].entries()) {
      const frames = yield* Effect.scoped(
        Effect.gen(function* () {
          const client = yield* connect(served.path)
          yield* client.ask({ op: "resume", after: rows.at(-1)?.["id"] ?? start?.["event"] })
          const gate = gates.get(steps[step - 1] ?? "")
          if (gate !== undefined) yield* Deferred.succeed(gate, undefined)
          let told = 0
          return yield* client.until((frame) => {
            if (frame["tool_call_id"] === call) told += 1
            return told === 2 || frame["type"] === "done"
          })
        })
      )
      rows.push(...frames.filter(({ seq }) => seq !== undefined))
    }
    const client = yield* connect(served.path)
    assert.deepStrictEqual(rows, yield* rowsOf(client, start?.["event"]))
    assert.strictEqual(new Set(rows.map(({ id }) => id)).size, rows.length)
  })
)

it.scopedLive("IX-6: rows that arrive while an idle session is replayed are told once, behind the others", () =>
  Effect.gen(function* () {
    const served = yield* fresh()
    const client = yield* connect(served.path)
    const { id } = yield* eventful(served, client)
    const log = Context.get(served.context, EventLog)
    const { latest } = { ...log }
    let left = 3
    // The replay asks whether it has reached the end: just before the answer another event is there.
    Object.assign(log, {
      latest: (sessionID: SessionID) =>
        Effect.zipRight(
          left-- > 0
            ? Effect.orDie(runtimeOf(served, (sessions) => sessions.rename(id, `title ${left}`)))
            : Effect.void,
          latest(sessionID)
        )
    })
    const told = yield* rowsOf(client)
    assert.isBelow(left, 1)
    Object.assign(log, { latest })
    assert.deepStrictEqual(told, yield* rowsOf(client))
    assert.strictEqual(new Set(told.map(({ id }) => id)).size, told.length)
  })
)
