/**
 * Readers whose machine is gone. Method: a client in python drops every packet for its connection, with a filter of its own socket;
 * nobody says so to the server, whose system sends again and again.
 */
import { spawn } from "node:child_process"
import { connect, type Socket } from "node:net"
import { fileURLToPath } from "node:url"
import { assert, it } from "@effect/vitest"
import { Duration, Effect, Queue, TestClock } from "effect"
import { EventLog } from "../../../packages/log/src/log/EventLog.ts"
import { begin, renamed, session } from "../../contracts/Samples.ts"
import { vanished } from "../../../packages/server/src/http/HttpListener.ts"
import * as Opened from "./support/Opened.ts"
import * as ServedApi from "./support/ServedApi.ts"
import { answer, Served, token } from "./support/ServedApi.ts"
import * as Texts from "./support/Texts.ts"
import { lacks } from "../../support/Parts.ts"

const script = fileURLToPath(new URL("support/vanish.py", import.meta.url))
const ndjson = "application/x-ndjson"

/** A reader that has vanished. */
const vanishing = (path: string) =>
  Effect.flatMap(Served, ({ url }) => {
    const { hostname, port } = new URL(url)
    return Effect.acquireRelease(
      Effect.async<ReturnType<typeof spawn>>((resume) => {
        const child = spawn("python3", [script, hostname, port, path, token], { stdio: ["pipe", "pipe", "inherit"] })
        child.stdout.once("data", () => resume(Effect.succeed(child)))
        child.once("exit", (code) => resume(Effect.dieMessage(`the reader ended with ${code}`)))
      }),
      (child) => Effect.sync(() => child.kill("SIGKILL"))
    )
  })

/** A reader that lives and reads nothing. */
const idling = (path: string) =>
  Effect.flatMap(Served, ({ url }) =>
    Effect.acquireRelease(
      Effect.async<Socket>((resume) => {
        const { host, hostname, port } = new URL(url)
        const socket = connect(Number(port), hostname, () => {
          socket.pause()
          socket.write(`GET ${path} HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${token}\r\n\r\n`)
          resume(Effect.succeed(socket))
        })
        socket.on("error", () => {})
      }),
      (socket) => Effect.sync(() => socket.destroy())
    )
  )

it.scopedLive.skipIf(lacks("linux") || lacks("python"))(
  "HT-38: a reader that vanishes without a word gives back what it held, and one that only reads nothing stays",
  () =>
    Effect.gen(function* () {
      const [log, id] = [yield* EventLog, session()]
      yield* begin(id)
      const path = `/sessions/${id}/events`
      const opened = yield* Opened.responses(path)
      yield* vanishing(path)
      const gone = yield* Queue.take(opened)
      yield* idling(path)
      const idle = yield* Queue.take(opened)
      const take = yield* Texts.open(path, ndjson)
      yield* log.append(id, [renamed("for those who live")])
      yield* take((text) => text.includes("for those who live"))
      yield* Opened.closed(gone)
      assert.isFalse(idle.destroyed)
    }).pipe(Effect.provide(ServedApi.layer({}, {}, { timeouts: { unacknowledged: Duration.seconds(1) } })))
)

it.scoped("HT-50: a reader that takes nothing of less than a full buffer is closed after 30 seconds too", () =>
  Effect.gen(function* () {
    const [log, id] = [yield* EventLog, session()]
    yield* begin(id)
    const path = `/sessions/${id}/events`
    const opened = yield* Opened.responses(path)
    yield* idling(path)
    const held = yield* Queue.take(opened)
    const take = yield* Texts.open(path, ndjson)
    /** Stores an event, and waits until the other reader has it: then it was sent to both. */
    const pass = (title: string) =>
      Effect.zipRight(
        log.append(id, [renamed(title)]),
        take((text) => text.endsWith(`${title}"}}}\n`))
      )
    // Until the system takes no more for the reader: what still moves has moved when another request is answered.
    for (let before = 0; before === 0 || held.writableLength !== before;) {
      yield* pass("x".repeat(12_000))
      before = held.writableLength
      if (before > 0) yield* Effect.replicateEffect(answer("/health"), 3)
    }
    assert.isFalse(held.writableNeedDrain)
    yield* TestClock.adjust("44 seconds")
    assert.isFalse(held.destroyed)
    yield* TestClock.adjust("1 seconds")
    yield* Opened.closed(held)
    yield* pass("after it")
  }).pipe(Effect.provide(ServedApi.layer()))
)

const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:10D6 00000000:0000 0A 00000000:00000000 00:00000000 00000009     0        0 1 1 ffff 100 0 0 10 0
   1: 0100007F:10D6 0100007F:C8B6 01 00000009:00000000 01:0000001F 00000007     0        0 2 2 ffff 24 4 30 10 -1
   2: 0100007F:10D6 0264A8C0:C8B7 01 00000009:00000000 01:0000001F 00000006     0        0 3 2 ffff 24 4 30 10 -1
   3: 0100007F:10D7 0264A8C0:C8B8 01 00000009:00000000 01:0000001F 00000009     0        0 4 2 ffff 24 4 30 10 -1
   4: 0100007F:10D6 0264A8C0:C8B9 04 00000009:00000000 01:0000001F 00000009     0        0 5 2 ffff 24 4 30 10 -1
  10: 0100007F:10D6 0264A8C0:00FF 01 00000009:00000000 01:0000001F 0000000A     0        0 6 2 ffff 24 4 30 10 -1
  11: 00000000000000000000000001000000:10D6 B80D012000000000000000000F000000:C8B6 01 00000009:00000000 01:0000001F 00000007     0        0 7 2 ffff 24 4 30 10 -1
`

it("HT-38: the table of connections is read for one port, for peers of both families that answer nothing for long", () => {
  assert.deepStrictEqual(vanished(table, 4310, 7), [
    { address: "127.0.0.1", port: 51382 },
    { address: "192.168.100.2", port: 255 },
    { address: "[2001:db8::f]", port: 51382 }
  ])
  assert.deepStrictEqual(vanished("no table", 4310, 7), [])
})
