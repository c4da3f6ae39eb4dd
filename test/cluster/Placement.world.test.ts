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
    /** Admits a prompt at this node. */
    const admit = (id: SessionID) =>
      Effect.promise(() => {
        const admitted = once(lines, "line")
        started.stdin.write(`${id}\n`)
        return admitted
      })
    return { admit, kill: Effect.sync(() => started.kill("SIGKILL")) }
  })

/** Which node answered the session's next prompt: waits for the answer. */
const answered = (sessionID: SessionID, after: number) =>
  Effect.gen(function* () {
    const log = yield* EventLog
    const found = yield* Stream.runHead(
      Stream.filterMap(log.tail({ sessionID, after }), (event) =>
        event.type === "session.next.text.ended" ? Option.some(event.data.text) : Option.none()
      )
    )
    return Option.getOrElse(found, () => "")
  })

/** Longer than a test: a sweep must not do what a wake does. */
const never = 3_600_000

/** Two nodes, and a session that `one` admitted and `two` answered. */
const scenario = Effect.fnUntraced(function* (sweepMs: number) {
  const { url } = yield* server
  const reader = yield* Layer.build(Postgres.layer({ url }))
  const [one, two] = [yield* node("one", url, sweepMs), yield* node("two", url, sweepMs)]
  const prompt = (id: SessionID, after: number) =>
    Effect.zipRight(one.admit(id), Effect.provide(answered(id, after), reader))
  // Shards come to the second node some time after its start.
  let [id, by] = [session(), ""]
  for (let left = 200; left > 0 && by !== "from two"; left -= 1) {
    id = session()
    by = yield* prompt(id, -1)
  }
  const head = Effect.provide(
    Effect.flatMap(EventLog, (log) => log.latest(id)),
    reader
  )
  return { id, by, two, head, prompt }
})

describe.skipIf(lacks("postgres"))("cluster", () => {
  it.scopedLive("CU-1: a prompt that one node admits runs on the node that holds the session's shard", () =>
    Effect.map(scenario(never), ({ by }) => assert.strictEqual(by, "from two"))
  )

  it.scopedLive("CU-3: after the death of a session's node another node runs its prompts", () =>
    Effect.gen(function* () {
      const { by, head, id, prompt, two } = yield* scenario(500)
      assert.strictEqual(by, "from two")
      const after = yield* head
      yield* two.kill
      assert.strictEqual(yield* prompt(id, after), "from one")
    })
  )
})
