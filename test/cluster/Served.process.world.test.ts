/** Method: two `daybook serve --node` over one PostgreSQL; who runs a session is seen at the model that is asked. */
import { assert, beforeAll, it } from "@effect/vitest"
import { Effect, Fiber, Predicate, Schema } from "effect"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe } from "vitest"
import { NodesReport } from "../../packages/log/src/domain/NodesReport.ts"
import { session } from "../support/Logs.ts"
import { lacks } from "../support/Parts.ts"
import { query } from "../support/Postgres.ts"
import { build } from "../cli/support/Bundle.ts"
import type { Exchange } from "../cli/support/ModelServer.ts"
import { place } from "../cli/support/Process.ts"
import * as LossyProxy from "../postgres/support/Proxy.ts"
import { database, freePort, heardFrame, type ServedNode, servedNode } from "./support/ServedNode.ts"

beforeAll(() => void build())

const prompt = (node: ServedNode, id: string, text: string) =>
  node.post(`/sessions/${id}/prompts`, { prompt: { text }, delivery: "queue" })

/** A session that `one` admits and `two` runs, with the request to the model of `two`. */
const ranByTwo = Effect.fnUntraced(function* (one: ServedNode, two: ServedNode, text: string) {
  for (;;) {
    const id = session()
    yield* one.post("/sessions", { id, location: { directory: one.here.cwd } })
    const frames = yield* one.frames(`/sessions/${id}/events?live=1`)
    yield* prompt(one, id, text)
    const [name, turn] = yield* Effect.raceFirst(
      Effect.map(one.model.next, (turn): ["one" | "two", Exchange] => ["one", turn]),
      Effect.map(two.model.next, (turn): ["one" | "two", Exchange] => ["two", turn])
    )
    if (name === "two") return { id, frames, turn }
    yield* turn.text("mine")
    yield* turn.finish()
  }
})

const deltaOf = (frame: { readonly frame: string; readonly live?: unknown }) => {
  const live = frame.live
  return Predicate.hasProperty(live, "data") && Predicate.hasProperty(live.data, "delta")
    ? String(live.data.delta)
    : undefined
}

/** Answers with a command that leaves a line. */
const marks = (turn: Exchange, name: string) =>
  Effect.zipRight(turn.toolCall(name, "bash", { command: `echo ${name} >> trace.txt` }), turn.finish("tool_calls"))

const answers = (turn: Exchange, text: string) => Effect.zipRight(turn.text(text), turn.finish())

const seqOf = (frame: { readonly frame: string; readonly event?: unknown }): ReadonlyArray<number> =>
  Predicate.hasProperty(frame.event, "seq") ? [Number(frame.event.seq)] : []

const outcomeOf = (frame: { readonly frame: string; readonly event?: unknown }) => {
  const event = frame.event
  return Predicate.hasProperty(event, "data") && Predicate.hasProperty(event.data, "outcome")
    ? String(event.data.outcome)
    : undefined
}

describe.skipIf(lacks("postgres"))("daybook serve --node", () => {
  it.scopedLive("CU-24: a prompt over HTTP to one node that runs on another streams its deltas from the first", () =>
    Effect.gen(function* () {
      const url = yield* database
      const [one, two] = yield* Effect.all([servedNode(url), servedNode(url)], { concurrency: 2 })
      const { frames, turn } = yield* ranByTwo(one, two, "who?")
      // The way of the deltas opens after the first text began: what began before is not heard.
      yield* turn.reasoning("hm")
      for (const word of ["from ", "two"]) {
        yield* turn.text(word)
        assert.strictEqual(yield* heardFrame(frames, "a delta", deltaOf), word)
      }
      yield* turn.finish()
      assert.strictEqual(yield* heardFrame(frames, "the outcome", outcomeOf), "completed")
    })
  )

  it.scopedLive(
    "CU-25: after the kill of a node in mid-turn, another settles the turn and goes on with the queue",
    () =>
      Effect.gen(function* () {
        const url = yield* database
        const [one, two] = yield* Effect.all([servedNode(url), servedNode(url)], { concurrency: 2 })
        const { frames, id, turn } = yield* ranByTwo(one, two, "who?")
        yield* turn.text("half an ans")
        yield* prompt(one, id, "afterwards")
        yield* two.process.signal("SIGKILL")
        assert.strictEqual(yield* heardFrame(frames, "the end of the turn", outcomeOf), "interrupted")
        const next = yield* one.model.next
        assert.include(JSON.stringify(next.body.messages), "afterwards")
        yield* next.text("done")
        yield* next.finish()
        assert.strictEqual(yield* heardFrame(frames, "the end of the queue", outcomeOf), "completed")
      })
  )

  it.scopedLive(
    "CU-5, CU-25, CU-36, EX-E13, CL-828: with `--recovery resume` the turn of a killed node goes on at another: a pause for readers",
    () =>
      Effect.gen(function* () {
        const url = yield* database
        const resuming = servedNode(url, ["--recovery", "resume"])
        const [one, two] = yield* Effect.all([resuming, resuming], { concurrency: 2 })
        const { frames, id, turn } = yield* ranByTwo(one, two, "who?")
        // A reader is told what begins after it came.
        yield* turn.reasoning("hm")
        yield* turn.text("half an ans")
        yield* heardFrame(frames, "the half", (frame) => (deltaOf(frame) === "half an ans" ? true : undefined))
        yield* prompt(one, id, "afterwards")
        const waits = yield* Effect.fork(one.get(`/sessions/${id}/wait`))
        yield* two.process.signal("SIGKILL")
        const again = yield* one.model.next
        assert.notInclude(JSON.stringify(again.body.messages), "afterwards")
        for (const word of ["the ", "whole"]) {
          yield* again.text(word)
          assert.strictEqual(yield* heardFrame(frames, "a delta", deltaOf), word)
        }
        yield* again.finish()
        assert.strictEqual(yield* heardFrame(frames, "the end of the turn", outcomeOf), "completed")
        yield* answers(yield* one.model.next, "done")
        assert.strictEqual(yield* heardFrame(frames, "the end of the queue", outcomeOf), "completed")
        assert.include(JSON.stringify(yield* Fiber.join(waits)), `"state":"completed"`)
      })
  )

  it.scopedLive("CU-28, CU-34, OB-4: at SIGTERM in mid-run, another node goes on with the activity and its queue", () =>
    Effect.gen(function* () {
      const url = yield* database
      const [one, two] = yield* Effect.all([servedNode(url), servedNode(url)], { concurrency: 2 })
      const slow = yield* ranByTwo(one, two, "slowly")
      const { frames, id, turn } = yield* ranByTwo(one, two, "go")
      yield* marks(turn, "one")
      const second = yield* two.model.next
      yield* prompt(one, id, "afterwards")
      yield* two.process.signal("SIGTERM")
      yield* two.process.until("stderr", (text) => text.includes("stopping: SIGTERM"))
      yield* marks(second, "two")
      const third = yield* one.model.next
      assert.notInclude(JSON.stringify(third.body.messages), "afterwards")
      yield* marks(third, "three")
      yield* answers(yield* one.model.next, "All done.")
      const last = yield* one.model.next
      assert.include(JSON.stringify(last.body.messages), "afterwards")
      yield* answers(last, "And that.")
      for (const _ of ["the run", "the queue"]) {
        assert.strictEqual(yield* heardFrame(frames, "an outcome", outcomeOf), "completed")
      }
      // The node that ends still works on a turn, which ends in time.
      yield* answers(slow.turn, "At last.")
      assert.strictEqual(yield* heardFrame(slow.frames, "an outcome", outcomeOf), "completed")
      assert.strictEqual((yield* two.process.ended).code, 0)
      assert.strictEqual(readFileSync(join(one.here.cwd, "trace.txt"), "utf8"), "one\ntwo\nthree\n")
      // Each node reports at intervals what it did.
      yield* Effect.repeat(Effect.flatMap(one.get("/nodes"), Schema.decodeUnknown(NodesReport)), {
        until: ({ nodes }) => nodes.some(({ movedAt, takenUp }) => takenUp === 1 && movedAt !== undefined)
      })
      assert.match(yield* one.text("/metrics"), /^daybook_hand_overs_total\{.*direction="taken".*\} 1$/m)
    })
  )

  it.scopedLive("CU-28: a node that ends with nothing to do is gone for the others when its process ends", () =>
    Effect.gen(function* () {
      const url = yield* database
      const [one, two] = yield* Effect.all([servedNode(url), servedNode(url)], { concurrency: 2 })
      const { frames, turn } = yield* ranByTwo(one, two, "hi")
      yield* answers(turn, "Hello.")
      assert.strictEqual(yield* heardFrame(frames, "an outcome", outcomeOf), "completed")
      yield* two.process.signal("SIGTERM")
      assert.strictEqual((yield* two.process.ended).code, 0)
      const schema = new URL(url).searchParams.get("schema")
      const runners = yield* query(url, `SELECT address FROM ${schema}.cluster_runners`)
      assert.deepStrictEqual(runners, [{ address: one.address }])
    })
  )

  it.scopedLive("CU-36: a wait at another node lasts until the run of a node that leaves has ended", () =>
    Effect.gen(function* () {
      const url = yield* database
      const [one, two] = yield* Effect.all([servedNode(url), servedNode(url)], { concurrency: 2 })
      const { id, turn } = yield* ranByTwo(one, two, "slowly")
      yield* two.process.signal("SIGTERM")
      yield* two.process.until("stderr", (text) => text.includes("stopping: SIGTERM"))
      // The shard is here from now on.
      yield* Effect.repeat(one.get("/nodes"), {
        until: (report) => JSON.stringify(report).includes(`"leaving":true`)
      })
      const waits = yield* Effect.fork(one.get(`/sessions/${id}/wait`))
      yield* one.get(`/sessions/${id}`)
      yield* answers(turn, "At last.")
      assert.include(JSON.stringify(yield* Fiber.join(waits)), `"state":"completed"`)
    })
  )

  it.scopedLive("CU-29: a stream that ends with its node goes on at another with its cursor, without a gap", () =>
    Effect.gen(function* () {
      const url = yield* database
      const [one, two] = yield* Effect.all([servedNode(url), servedNode(url)], { concurrency: 2 })
      const { id, turn } = yield* ranByTwo(one, two, "go")
      const before = yield* two.frames(`/sessions/${id}/events`)
      yield* marks(turn, "one")
      const second = yield* two.model.next
      yield* two.process.signal("SIGTERM")
      const heard: Array<number> = []
      const cursor = yield* heardFrame(before, "the end with a cursor", (frame) => {
        heard.push(...seqOf(frame))
        return frame.frame === "end" ? String(frame["cursor"]) : undefined
      })
      const after = yield* one.frames(`/sessions/${id}/events?after=${cursor}`)
      yield* marks(second, "two")
      yield* answers(yield* one.model.next, "All done.")
      yield* heardFrame(after, "the end of the run", (frame) => {
        heard.push(...seqOf(frame))
        return outcomeOf(frame)
      })
      assert.deepStrictEqual(
        heard,
        heard.map((_, at) => at)
      )
    })
  )

  it.scopedLive("CU-62: a node that is told to end while the database is away ends", () =>
    Effect.gen(function* () {
      const proxy = yield* LossyProxy.make(yield* database)
      const one = yield* servedNode(proxy.url, ["--drain", "1"])
      const id = session()
      yield* one.post("/sessions", { id, location: { directory: one.here.cwd } })
      yield* prompt(one, id, "who?")
      yield* one.model.next
      proxy.cut()
      yield* one.process.signal("SIGTERM")
      yield* one.process.ended
    })
  )

  it.scopedLive("CU-60, CL-841: the lease of a node is that of its sessions; it has bounds, and needs a node", () =>
    Effect.gen(function* () {
      const url = yield* database
      const one = yield* servedNode(url, ["--lease", "2"])
      const id = session()
      yield* one.post("/sessions", { id, location: { directory: one.here.cwd } })
      yield* prompt(one, id, "who?")
      yield* one.model.next
      const schema = new URL(url).searchParams.get("schema")
      const rows = yield* query(url, `SELECT lease_ms::int FROM ${schema}.event_sequence WHERE owner_id IS NOT NULL`)
      assert.deepStrictEqual(rows, [{ lease_ms: 2_000 }])
      const long = yield* one.here.run(["serve", "--http", "127.0.0.1:0", "--lease", "61"])
      assert.strictEqual(long.code, 2)
      assert.include(long.stderr, "a whole number from 1 to 60")
      const alone = yield* one.here.run(["serve", "--http", "127.0.0.1:0", "--lease", "2"])
      assert.strictEqual(alone.code, 2)
      assert.include(alone.stderr, "--lease needs --node HOST:PORT")
    })
  )

  it.scopedLive("CL-820, CU-27: on a file, and at a port that is in use, a node is refused in one sentence", () =>
    Effect.gen(function* () {
      const here = yield* place
      const serve = (node: string, env: Record<string, string> = {}) =>
        here.run(["serve", "--node", node, "--http", "127.0.0.1:0"], { env })
      const onFile = yield* serve(`127.0.0.1:${yield* freePort}`)
      assert.strictEqual(onFile.code, 2)
      assert.match(onFile.stderr, /^daybook: --node needs a database of PostgreSQL, and .* is a file/m)
      const url = yield* database
      const { address } = yield* servedNode(url)
      const twice = yield* serve(address, { DAYBOOK_DB: url })
      assert.strictEqual(twice.code, 4)
      assert.include(twice.stderr, `daybook: the node ${address} cannot listen: another process listens there`)
      const foreign = yield* serve("192.0.2.1:4311", { DAYBOOK_DB: url })
      assert.strictEqual(foreign.code, 6)
      assert.include(foreign.stderr, "this is no address of this machine")
    })
  )
})
