/**
 * What hasty, unlucky and hostile clients get: requests that race each other, connections that are gone too early, folders
 * that are gone, runs whose model fails midway. Method: real sockets, and a model that answers when the test says so.
 */
import { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { AiError } from "@effect/ai"
import { it } from "@effect/vitest"
import { Context, Deferred, Duration, Effect, Fiber, Layer, Option, Stream } from "effect"
import { assert } from "vitest"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { writer } from "../../packages/server/src/socket/Follow.ts"
import { fromContext } from "../../packages/server/src/socket/Backend.ts"
import { RunID } from "../../packages/transcript/src/row/Rows.ts"
import { brief, compaction, summary, window } from "../compaction/support/Talks.ts"
import { temporaryFolder } from "../support/Harness.ts"
import { callParts, calls, finish, held, says, streams, textParts } from "../support/ScriptedModel.ts"
import {
  connect,
  deltasOf,
  fresh,
  holdOne,
  open,
  openFor,
  script,
  type Served,
  textOf,
  typesOf,
  uid,
  withoutAgent
} from "./support/Served.ts"

/** A run that says something and goes on until it is stopped. */
const endless = (served: Served) =>
  script(served, ({ answer }) =>
    Effect.flatMap(Deferred.make<void>(), (gate) => answer(held(textParts("t", "hm").slice(0, 2), gate)))
  )

const folderOf = ({ root }: Served) => join(root, `home/${uid}/agent/build`)
const fileOf = (served: Served, name: string, session = "default") =>
  readFileSync(join(folderOf(served), "session", session, name), "utf8")

/** Waits until the prompt of this client's id is in the log. */
const admitted = ({ context }: Served, id: string) =>
  Stream.runHead(
    Stream.filter(
      Context.get(context, EventLog).feed({ after: 0 }),
      (event) => event.type === "session.next.prompt.admitted" && event.data.prompt.client?.id === id
    )
  )

it.scopedLive(
  "FR-2: each operation is answered on one connection, one that is none with EINVAL; unknown fields are none",
  () =>
    Effect.gen(function* () {
      const served = yield* fresh()
      yield* script(served, ({ answer }) => answer(says("one")))
      const client = yield* connect(served.path)
      yield* client.ask({ op: "ping", id: "p1", input: 3, colour: "red" })
      assert.deepStrictEqual(yield* client.next, { type: "pong", id: "p1" })
      yield* client.ask({ op: "drop", id: "d1" })
      assert.deepInclude(yield* client.next, { type: "error", id: "d1", code: "EINVAL" })
      yield* client.ask({ op: "send", id: "m1", input: "hi", colour: { of: "nothing" } })
      assert.deepStrictEqual(typesOf(yield* client.untilType("done")), ["start", "delta", "message", "done"])
      yield* client.ask({ op: "resume", colour: null })
      assert.include(typesOf(yield* client.untilType("done")), "message")
      yield* client.ask({ op: "cancel", id: "m1", colour: [] })
      assert.deepInclude(yield* client.next, { type: "error", id: "m1", code: "ENOENT" })
    })
)

it.scopedLive(
  "DC-2: a space goes with the shared scope and with no other, in every operation, and nothing is made",
  () =>
    Effect.gen(function* () {
      const served = yield* fresh({ serve: { shared: { lab: { read: "owner" } } } })
      const client = yield* connect(served.path)
      for (const request of [{ op: "send", id: "m1", input: "hi" }, { op: "resume" }, { op: "cancel", id: "m1" }]) {
        for (const target of [
          { scope: "shared" },
          { shared: "lab" },
          { scope: "private", shared: "lab" },
          { scope: "temp", shared: "lab" }
        ]) {
          yield* client.ask({ ...request, ...target })
          assert.deepInclude(
            yield* client.next,
            { type: "error", code: "EINVAL" },
            JSON.stringify({ ...request, ...target })
          )
        }
      }
      assert.deepStrictEqual((yield* Context.get(served.context, Sessions).list()).items, [])
    })
)

it.scopedLive("FR-11: a cancel right behind its send stops the run", () =>
  Effect.gen(function* () {
    const served = yield* fresh()
    yield* endless(served)
    const client = yield* connect(served.path)
    yield* client.write('{"op":"send","id":"m1","input":"hi"}\n{"op":"cancel","id":"m1"}\n')
    const frames = yield* client.untilType("done")
    assert.deepInclude(frames.at(-1), { id: "m1", status: "cancelled" })
    assert.notInclude(typesOf(frames), "error")
  })
)

it.scopedLive(
  "SO-33: beside a prompt that cannot begin, what is over is told again, and the prompt can be taken back",
  () =>
    Effect.gen(function* () {
      const root = yield* temporaryFolder
      const { client: second, refused, served } = yield* withoutAgent(root)
      assert.deepInclude(refused, { type: "error", id: "m2", code: "EIO" })
      yield* second.ask({ op: "send", id: "m1", input: "first" })
      assert.deepStrictEqual(typesOf(yield* second.untilType("done")), ["start", "delta", "message", "done"])
      yield* second.ask({ op: "resume" })
      assert.deepStrictEqual(typesOf(yield* second.untilType("error")), ["state", "start", "message", "done", "error"])
      yield* second.ask({ op: "cancel", id: "m2" })
      assert.deepInclude(yield* second.next, { type: "done", id: "m2", status: "cancelled" })
      yield* served.close
    })
)

it.scopedLive("SO-65: what a client sent before it went away is taken", () =>
  Effect.gen(function* () {
    const served = yield* fresh()
    yield* endless(served)
    const client = yield* connect(served.path)
    const lines = Array.from({ length: 12 }, (_, at) => `{"op":"send","id":"m${at}","input":"hi ${at}"}\n`)
    yield* Effect.async<void>((resume) => void client.socket.write(lines.join(""), () => resume(Effect.void)))
    // At its first answer the server has read all lines: what it has not read goes with the connection.
    yield* client.next
    yield* client.leave
    assert.isTrue(Option.isSome(yield* admitted(served, "m11")))
  })
)

it.scopedLive(
  "FR-7: with a retry, calls, texts at once and a compaction, deltas, message and latest.md are one text",
  () =>
    Effect.gen(function* () {
      const ms = Duration.millis(1)
      const served = yield* fresh({
        model: { ...window, policy: { retry: { times: 2, baseDelay: ms, maxDelay: ms } } },
        runtime: { agents: [brief()], compaction },
        serve: { agents: [{ name: brief().name }] }
      })
      const busy = new AiError.HttpResponseError({
        module: "Test",
        method: "streamText",
        reason: "StatusCode",
        request: { method: "POST", url: "http://127.0.0.1/", urlParams: [], hash: Option.none(), headers: {} },
        response: { status: 529, headers: {} },
        body: "busy"
      })
      const lengthy = "word ".repeat(600)
      const call = (id: string) => callParts(id, "no_such_tool", {})
      yield* script(served, ({ answer }) =>
        Effect.all([
          answer(Stream.fail(busy)),
          answer(
            streams(
              ...textParts("t", "fir", "st", lengthy),
              ...call("c"),
              ...textParts("u", " and", " more", lengthy),
              {
                type: "finish",
                reason: "tool-calls",
                usage: { inputTokens: 2500, outputTokens: 100, totalTokens: 2600 }
              }
            )
          ),
          // It is longer than the window by now.
          answer(says(summary("To be told"))),
          answer(calls(textParts("t", ""), call("d"))),
          answer(
            streams(
              ...textParts("t", "\ud83d", "\ude00 third\u2028").slice(0, 3),
              ...textParts("v", "later"),
              { type: "text-delta", id: "t", delta: "!" },
              { type: "text-end", id: "t" },
              finish()
            )
          )
        ])
      )
      const client = yield* connect(served.path)
      yield* client.ask({ op: "send", id: "m1", input: "hi" })
      const frames = yield* client.untilType("done")
      const message = textOf(frames.find(({ type }) => type === "message"))
      assert.strictEqual(message, `first${lengthy} and more${lengthy}\n\n\u{1f600} third\u2028!later`)
      assert.strictEqual(deltasOf(frames), message)
      assert.strictEqual(
        readFileSync(join(served.root, `home/${uid}/agent/${brief().name}/session/default/latest.md`), "utf8"),
        `${message}\n`
      )
      const events = Context.get(served.context, EventLog).feed({ after: 0 })
      assert.isTrue(
        Option.isSome(
          yield* Stream.runHead(Stream.filter(events, ({ type }) => type === "session.next.compaction.ended"))
        )
      )
    })
)

it.scopedLive("FR-11: who follows by resume and cancels gets one done", () =>
  Effect.gen(function* () {
    const served = yield* fresh()
    yield* endless(served)
    const client = yield* connect(served.path)
    yield* client.ask({ op: "send", id: "m1", input: "hi" })
    yield* client.untilType("delta")
    const other = yield* connect(served.path)
    yield* other.ask({ op: "resume" })
    yield* other.untilType("start")
    yield* other.ask({ op: "cancel", id: "m1" })
    yield* client.untilType("done")
    yield* other.untilType("done")
    yield* other.ask({ op: "ping" })
    assert.deepStrictEqual(typesOf(yield* other.untilType("pong")), ["pong"])
  })
)

it.scopedLive("FR-8: a repetition is answered though its folder is gone", () =>
  Effect.gen(function* () {
    const served = yield* fresh()
    yield* script(served, ({ answer }) => answer(says("one")))
    const world = join(folderOf(served), "root")
    mkdirSync(join(world, "work"), { recursive: true })
    const client = yield* connect(served.path)
    yield* client.ask({ op: "send", id: "m1", cwd: "/work", input: "hi" })
    yield* client.untilType("done")
    rmSync(world, { recursive: true })
    yield* client.ask({ op: "send", id: "m1", cwd: "/work", input: "hi" })
    const frames = yield* client.until(({ type }) => type === "done" || type === "error")
    assert.deepStrictEqual(typesOf(frames), ["start", "delta", "message", "done"])
    // What is no repetition is refused as ever.
    yield* client.ask({ op: "send", id: "m1", cwd: "/work", input: "ho" })
    assert.deepInclude(yield* client.next, { type: "error", id: "m1", code: "EINVAL" })
    yield* client.ask({ op: "send", id: "m2", cwd: "/work", input: "hi" })
    assert.deepInclude(yield* client.next, { type: "error", id: "m2", code: "ENOENT" })
  })
)

it.scopedLive(
  "SO-55: a server with temp sessions closes, whether their runs are over, go on, or their client has just left",
  () =>
    Effect.gen(function* () {
      const root = yield* temporaryFolder
      for (const at of Array(9).keys()) {
        const served = yield* openFor({ root })
        if (at % 3 !== 0) yield* endless(served)
        else yield* script(served, ({ answer }) => answer(says("one")))
        const client = yield* connect(served.path)
        yield* client.ask({ op: "send", id: "m1", scope: "temp", input: "hi" })
        if (at % 3 === 0) yield* client.untilType("done")
        else if (at % 3 === 1) yield* client.untilType("delta")
        else yield* client.leave
        yield* served.close
      }
    })
)

it.scopedLive(
  "SO-55: a runtime of temp sessions that could not be made is tried again, and the next that asks has it",
  () =>
    Effect.gen(function* () {
      const root = yield* temporaryFolder
      const other = yield* open({ root: yield* temporaryFolder })
      let tries = 0
      const temp = Layer.unwrapEffect(
        Effect.suspend(() =>
          ++tries === 1 ? Effect.fail({ message: "no room" }) : Effect.succeed(Layer.succeedContext(other.context))
        )
      )
      const served = yield* open({ root, serve: { temp } })
      yield* script(other, ({ answer }) => answer(says("one")))
      const client = yield* connect(served.path)
      yield* client.ask({ op: "send", id: "m1", scope: "temp", input: "hi" })
      assert.deepInclude(yield* client.next, { type: "error", id: "m1", code: "EIO", message: "no room" })
      yield* client.ask({ op: "send", id: "m1", scope: "temp", input: "hi" })
      assert.deepStrictEqual(typesOf(yield* client.untilType("done")), ["start", "delta", "message", "done"])
      assert.strictEqual(tries, 2)
    })
)

it.scopedLive("CW-4: a folder that is swapped for a link while its prompt waits is EACCES, and the session stays", () =>
  Effect.gen(function* () {
    const served = yield* fresh()
    const gate = yield* holdOne(served)
    const world = join(folderOf(served), "root")
    mkdirSync(join(world, "work"), { recursive: true })
    const client = yield* connect(served.path)
    yield* client.ask({ op: "send", id: "m1", input: "hi" })
    yield* client.untilType("start")
    yield* client.ask({ op: "send", id: "m2", cwd: "/work", input: "hi" })
    // It is in the queue of its session when the next line is taken.
    yield* client.ask({ op: "ping" })
    yield* client.untilType("pong")
    const watched = yield* connect(served.path)
    yield* watched.ask({ op: "resume" })
    yield* watched.untilType("start")
    renameSync(join(world, "work"), join(world, "moved"))
    symlinkSync("/", join(world, "work"))
    yield* Deferred.succeed(gate, undefined)
    const frames = yield* client.until(({ type, id }) => type === "error" && id === "m2")
    assert.deepInclude(frames.at(-1), { code: "EACCES" })
    // A run is done when the files have its end.
    yield* watched.untilType("done")
    assert.strictEqual(fileOf(served, "cwd"), "/\n")
  })
)

it.scopedLive(
  "SO-106, SO-31: of more than 64 requests in one write, those beyond are EBUSY, and a ping is answered",
  () =>
    Effect.gen(function* () {
      const served = yield* fresh()
      yield* endless(served)
      const client = yield* connect(served.path)
      const sends = Array.from(
        { length: 70 },
        (_, at) => `{"op":"send","id":"m${at}","session":"s${at % 2}","input":"hi"}\n`
      )
      yield* client.write(`${sends.join("")}{"op":"ping"}\n`)
      const frames = yield* client.untilType("pong")
      assert.deepStrictEqual(
        frames.flatMap(({ code, id, type }) => (type === "error" ? [`${String(id)} ${String(code)}`] : [])),
        [64, 65, 66, 67, 68, 69].map((at) => `m${at} EBUSY`)
      )
    })
)

it.scopedLive("SO-22: a run's end is told once the files tell of it, and what was said before it at once", () =>
  Effect.gen(function* () {
    const { context } = yield* fresh()
    const [current, asked] = [yield* Deferred.make<void>(), yield* Deferred.make<number>()]
    const written: Array<string> = []
    const out = writer({
      backend: fromContext(context, (position) =>
        Effect.zipRight(Deferred.succeed(asked, position), Deferred.await(current))
      ),
      write: (text) => Effect.sync(() => void written.push(text))
    })
    const run = RunID.make(`ctx-${"a".repeat(32)}`)
    yield* out.tell({ type: "text", of: { run, id: "m1" }, text: "said" })
    const done = { type: "frame", frame: { type: "done", run, status: "ok" }, position: 7 } as const
    const telling = yield* Effect.fork(Effect.zipRight(out.tell(done), out.flush))
    assert.strictEqual(yield* Deferred.await(asked), 7)
    assert.deepStrictEqual(written, [`{"type":"delta","id":"m1","run":"${run}","text":"said"}\n`])
    yield* Deferred.succeed(current, undefined)
    yield* Fiber.join(telling)
    assert.deepStrictEqual(written.slice(1), [`{"type":"done","run":"${run}","status":"ok"}\n`])
  })
)
