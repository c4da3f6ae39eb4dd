/** Method: nodes are real processes over a real PostgreSQL; a reader that is no node reads who answered from the log. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, rmSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { assert, it } from "@effect/vitest"
import { Effect, Layer, Option, Stream } from "effect"
import { describe } from "vitest"
import type { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import type { SessionEvent } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import * as Postgres from "../../packages/postgres/src/Postgres.ts"
import { session } from "../support/Logs.ts"
import { lacks } from "../support/Parts.ts"
import * as PostgresServer from "../support/PostgresServer.ts"

const child = fileURLToPath(new URL("support/nodeChild.ts", import.meta.url))

const server = Effect.acquireRelease(
  Effect.sync(() => {
    const folder = mkdtempSync(join(tmpdir(), "daybook-cluster-"))
    return { folder, ...PostgresServer.start(folder, process.pid, ["fsync=off"]) }
  }),
  ({ folder }) =>
    Effect.sync(() => {
      PostgresServer.stop(folder)
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
    })
)

const freePort = Effect.promise(async () => {
  const socket = createServer().listen(0, "127.0.0.1")
  await once(socket, "listening")
  const address = socket.address()
  socket.close()
  return typeof address === "object" && address !== null ? address.port : 0
})

const node = (name: string, url: string, sweepMs: number) =>
  Effect.gen(function* () {
    const port = yield* freePort
    const started = yield* Effect.acquireRelease(
      Effect.sync(() =>
        spawn(process.execPath, ["--conditions=@daybook/source", child, name, url, String(port), String(sweepMs)], {
          stdio: ["pipe", "pipe", "inherit"]
        })
      ),
      (started) => Effect.sync(() => started.kill("SIGKILL"))
    )
    const lines = createInterface({ input: started.stdout })
    yield* Effect.promise(() => once(lines, "line"))
    const heard: Array<string> = []
    lines.on("line", (line) => {
      if (line.startsWith("heard ")) heard.push(line)
    })
    /** Has the node do this, and waits until it did. */
    const order = (verb: "ask" | "hold" | "interrupt" | "hear", id: SessionID) =>
      Effect.async<void>((resume) => {
        const done = (line: string) => {
          if (line !== `did ${verb} ${id}`) return
          lines.off("line", done)
          resume(Effect.void)
        }
        lines.on("line", done)
        started.stdin.write(`${verb} ${id}\n`)
      })
    const signal = (name: NodeJS.Signals) => Effect.sync(() => started.kill(name))
    return { order, heard, kill: signal("SIGKILL"), freeze: signal("SIGSTOP") }
  })

/** What the first event after this position that is chosen says: waits for it. */
const first = (sessionID: SessionID, after: number, choose: (event: SessionEvent) => string | undefined) =>
  Effect.gen(function* () {
    const log = yield* EventLog
    const found = yield* Stream.runHead(
      Stream.filterMap(log.tail({ sessionID, after }), (event) => Option.fromNullable(choose(event)))
    )
    return Option.getOrElse(found, () => "")
  })

const answer = (event: SessionEvent) => (event.type === "session.next.text.ended" ? event.data.text : undefined)
const begun = (event: SessionEvent) => (event.type === "session.next.text.started" ? "begun" : undefined)
const outcome = (event: SessionEvent) =>
  event.type === "session.next.activity.settled" ? event.data.outcome : undefined
const failure = (event: SessionEvent) => (event.type === "session.next.step.failed" ? event.data.error.type : undefined)

/** Longer than a test: a sweep must not do what a wake does. */
const never = 3_600_000

/** Two nodes, and a session that `one` admitted and `two` answered. */
const scenario = Effect.fnUntraced(function* (sweepMs: number) {
  const { url } = yield* server
  const reader = yield* Layer.build(Postgres.layer({ url }))
  const [one, two] = [yield* node("one", url, sweepMs), yield* node("two", url, sweepMs)]
  const seen = (id: SessionID, after: number, choose: Parameters<typeof first>[2]) =>
    Effect.provide(first(id, after, choose), reader)
  /** Which node answers a prompt that the first admits. */
  const ask = (id: SessionID, after: number) => Effect.zipRight(one.order("ask", id), seen(id, after, answer))
  // Shards come to the second node some time after its start.
  let [id, by] = [session(), ""]
  for (let left = 200; left > 0 && by !== "from two"; left -= 1) {
    id = session()
    by = yield* ask(id, -1)
  }
  assert.strictEqual(by, "from two")
  const head = Effect.provide(
    Effect.flatMap(EventLog, (log) => log.latest(id)),
    reader
  )
  /** The second node runs a turn that does not end; returns the position before it. */
  const hold = Effect.gen(function* () {
    const after = yield* head
    yield* one.order("hold", id)
    yield* seen(id, after, begun)
    return after
  })
  return { id, one, two, head, ask, hold, seen }
})

describe.skipIf(lacks("postgres"))("cluster", () => {
  it.scopedLive("CU-1: a prompt that one node admits runs on the node that holds the session's shard", () =>
    scenario(never)
  )

  it.scopedLive("CU-3: after the death of a session's node another node runs its prompts", () =>
    Effect.gen(function* () {
      const { ask, head, id, two } = yield* scenario(500)
      const after = yield* head
      yield* two.kill
      assert.strictEqual(yield* ask(id, after), "from one")
    })
  )

  it.scopedLive("CU-26: the shards of a node that is frozen go to another node when their leases end", () =>
    Effect.gen(function* () {
      const { ask, head, id, two } = yield* scenario(500)
      const after = yield* head
      yield* two.freeze
      assert.strictEqual(yield* ask(id, after), "from one")
    })
  )

  it.scopedLive("CU-4: an interrupt on one node stops the run on another, and returns when its end is stored", () =>
    Effect.gen(function* () {
      const { hold, id, one, seen } = yield* scenario(never)
      const after = yield* hold
      yield* one.order("interrupt", id)
      assert.strictEqual(yield* seen(id, after, outcome), "interrupted")
    })
  )

  it.scopedLive("CU-5: a reader on one node hears the deltas of a run on another", () =>
    Effect.gen(function* () {
      const { ask, head, id, one } = yield* scenario(never)
      yield* one.order("hear", id)
      // The reader's way to the other node opens meanwhile.
      for (let left = 50; left > 0 && one.heard.length === 0; left -= 1) yield* ask(id, yield* head)
      assert.strictEqual(one.heard[0], `heard ${id} from two`)
    })
  )

  it.scopedLive("CU-6, EX-E13: a turn that dies with its node goes on at the node that runs the next prompt", () =>
    Effect.gen(function* () {
      const { ask, hold, id, seen, two } = yield* scenario(500)
      const after = yield* hold
      yield* two.kill
      assert.strictEqual(yield* ask(id, after), "from one")
      assert.strictEqual(yield* seen(id, after, failure), "process.ended")
      assert.strictEqual(yield* seen(id, after, outcome), "completed")
    })
  )
})
