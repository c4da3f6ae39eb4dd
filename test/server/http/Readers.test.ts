/** Readers that wait, come together, do not read, or leave. */
import { connect, type Socket } from "node:net"
import { assert, it } from "@effect/vitest"
import { Effect, Queue, TestClock } from "effect"
import { vi } from "vitest"
import { EventLog } from "../../../packages/log/src/log/EventLog.ts"
import { begin, renamed, session } from "../../contracts/Samples.ts"
import * as Opened from "./support/Opened.ts"
import * as ServedApi from "./support/ServedApi.ts"
import { answer, Served, token } from "./support/ServedApi.ts"
import * as Texts from "./support/Texts.ts"

/** A connection that has asked for a path, and reads nothing until the test says so. */
const asking = (path: string) =>
  Effect.flatMap(Served, ({ url }) =>
    Effect.acquireRelease(
      Effect.async<Socket>((resume) => {
        const { host, hostname, port } = new URL(url)
        const socket = connect(Number(port), hostname, () => {
          socket.write(`GET ${path} HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${token}\r\n\r\n`)
          resume(Effect.succeed(socket))
        })
        socket.on("error", () => {})
      }),
      (socket) => Effect.sync(() => socket.destroy())
    )
  )

const [sse, ndjson] = ["text/event-stream", "application/x-ndjson"]

it.scoped("HT-47: a heartbeat comes every 15 seconds, and none before", () =>
  Effect.gen(function* () {
    const [log, id] = [yield* EventLog, session()]
    yield* begin(id)
    for (const [accept, heartbeat] of [
      [sse, ": alive\n\n"],
      [ndjson, "\n"]
    ] as const) {
      const [{ cursor }, take] = [
        yield* log.read({ sessionID: id }),
        yield* Texts.open(`/sessions/${id}/events`, accept)
      ]
      yield* take((text) => text.includes("replay.complete") && text.endsWith("\n"))
      for (let n = 1; n <= 2; n++) {
        yield* TestClock.adjust("14 seconds")
        yield* log.append(id, [renamed(`${n}`)])
        const event = yield* take((text) => text.endsWith("\n") && text.includes(`"seq":${cursor + n}`))
        assert.match(event, /^(?:event: event\n|\{)/)
        assert.strictEqual(event.trimEnd().split("\n").length, accept === sse ? 3 : 1)
        yield* TestClock.adjust("1 seconds")
        assert.strictEqual(yield* take((text) => text.length >= heartbeat.length), heartbeat)
      }
    }
  }).pipe(Effect.provide(ServedApi.layer()))
)

it.scoped("HT-49: an event is encoded once for all its readers", () =>
  Effect.gen(function* () {
    const [log, id] = [yield* EventLog, session()]
    yield* begin(id)
    const readers = yield* Effect.replicateEffect(Texts.open(`/sessions/${id}/events`, sse), 20)
    for (const take of readers) yield* take((text) => text.includes("replay.complete"))
    const encoded = vi.spyOn(JSON, "stringify")
    yield* Effect.addFinalizer(() => Effect.sync(() => encoded.mockRestore()))
    yield* log.append(id, [renamed("for everyone")])
    for (const take of readers) yield* take((text) => text.includes("for everyone"))
    const frames = encoded.mock.results.filter(({ value }) => /^\{"position":.*for everyone/.test(String(value)))
    assert.strictEqual(frames.length, 1)
  }).pipe(Effect.provide(ServedApi.layer()))
)

const long = "x".repeat(100_000)

/** A session with long events, a reader of it that does not read, and another one that does. */
const together = Effect.fnUntraced(function* (events: number) {
  const [log, id] = [yield* EventLog, session()]
  yield* begin(id)
  yield* Effect.replicateEffect(log.append(id, [renamed(long)]), events)
  const path = `/sessions/${id}/events`
  const opened = yield* Opened.responses(path)
  const idle = yield* asking(path)
  idle.pause()
  const held = yield* Queue.take(opened)
  const take = yield* Texts.open(path, ndjson)
  yield* take((text) => text.slice(-200).includes("replay.complete"))
  /** Stores an event, and waits until the other reader has it. */
  const pass = (title: string) =>
    Effect.zipRight(
      log.append(id, [renamed(title)]),
      take((text) => text.endsWith(`${title}"}}}\n`))
    )
  /** Fills the buffers of the kernel: these are full when it takes nothing while the other reader gets many events. */
  const fill = Effect.gen(function* () {
    let without = 0
    held.on("drain", () => (without = 0))
    for (; without < 30; without++) {
      yield* pass(long)
      assert.isAtMost(held.writableLength, 1_048_576)
    }
    assert.isTrue(held.writableNeedDrain)
  })
  return { idle, held, pass, fill }
})

for (const [where, stored] of [
  ["new events", 0],
  ["stored events", 130]
] as const) {
  it.scoped(`HT-50: a reader that does not read ${where} holds at most 1 MiB and 30 seconds, and others read on`, () =>
    Effect.gen(function* () {
      const { fill, held, pass } = yield* together(stored)
      yield* fill
      yield* TestClock.adjust("29 seconds")
      assert.isFalse(held.destroyed)
      yield* pass("while it holds")
      yield* TestClock.adjust("1 seconds")
      yield* Opened.closed(held)
      yield* pass("after it")
    }).pipe(Effect.provide(ServedApi.layer()))
  )
}

it.scoped("HT-50: a reader that reads on within 30 seconds gets everything", () =>
  Effect.gen(function* () {
    const { fill, idle, pass } = yield* together(0)
    yield* fill
    yield* pass("the last")
    yield* TestClock.adjust("29 seconds")
    const bytes = yield* Effect.async<number>((resume) => {
      let bytes = 0
      idle.on("data", (part: Buffer) => {
        bytes += part.length
        if (part.includes("the last")) resume(Effect.succeed(bytes))
      })
      idle.resume()
    })
    assert.isAbove(bytes, 3_000_000)
  }).pipe(Effect.provide(ServedApi.layer()))
)

for (const [how, leave] of [
  ["closes its side", (socket: Socket) => void socket.end()],
  ["resets the connection", (socket: Socket) => void socket.resetAndDestroy()]
] as const) {
  it.scoped(`HT-26: a reader that ${how} gives back what it held`, () =>
    Effect.gen(function* () {
      const id = session()
      yield* begin(id)
      const path = `/sessions/${id}/events`
      const opened = yield* Opened.responses(path)
      const reader = yield* asking(path)
      const held = yield* Queue.take(opened)
      reader.resume()
      assert.strictEqual((yield* answer(`/sessions/${id}`)).status, 429)
      leave(reader)
      yield* Opened.closed(held)
      assert.strictEqual((yield* answer(`/sessions/${id}`)).status, 200)
    }).pipe(Effect.provide(ServedApi.layer({}, {}, { limits: { requests: 1 } })))
  )
}
