/** What a client does when a server refuses, is silent, or misbehaves. */
import { assert, it } from "@effect/vitest"
import { Chunk, Deferred, Effect, Fiber, Stream, TestClock } from "effect"
import type { DaybookClient } from "../../packages/client/src/DaybookClient.ts"
import { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import * as Rude from "./support/Rude.ts"
import { clientOf, withoutDelays } from "./support/ServedClient.ts"

const sessionID = SessionID.make("ses_a")
const envelope = { position: 1, id: "evt_a", sessionID, version: 1, created: 0 }
const renamed = (seq: number) =>
  Rude.frame("event", { ...envelope, seq, type: "session.next.renamed", data: { title: "t" } }, `d1.00000000.1.${seq}`)

const seqs = (client: DaybookClient["Type"], count: number) =>
  client.events({ sessionID, after: 0 }).pipe(
    Stream.map(({ seq }) => seq),
    Stream.take(count),
    Stream.runCollect,
    Effect.map(Chunk.toReadonlyArray)
  )

it.scoped("HT-62: a refusal is the stream's error at once, with its fields", () =>
  Effect.gen(function* () {
    const refusals = [
      [401, { _tag: "Unauthorized", message: "no" }],
      [403, { _tag: "Forbidden", needs: "read", message: "no" }],
      [404, { _tag: "SessionNotFound", sessionID, message: "no" }],
      [410, { _tag: "CursorExpired", cursor: 0, floor: 7, floorCursor: "c", snapshot: "/s", message: "no" }],
      [400, { _tag: "ForeignCursor", cursor: "x", reason: "database", message: "no" }]
    ] as const
    for (const [status, { message: _, ...error }] of refusals) {
      const server = yield* Rude.serve((_number, response) =>
        Rude.refuses(response, status, { ...error, message: "no" })
      )
      const failure = yield* Effect.flip(seqs(yield* clientOf(server.url), 1))
      assert.deepInclude(failure, error)
      assert.strictEqual(server.requests(), 1)
    }
  })
)

it.scoped("HT-62: an answer that is not an event stream is the stream's error at once", () =>
  Effect.gen(function* () {
    for (const type of ["text/html", "application/json"]) {
      const server = yield* Rude.serve((_number, response) =>
        response.writeHead(200, { "content-type": type }).end('{"page":"<html>"}')
      )
      const client = yield* clientOf(server.url)
      const failure = yield* withoutDelays(Effect.flip(seqs(client, 1)))
      assert.deepInclude(failure, { _tag: "UnexpectedAnswer", status: 200 })
      assert.strictEqual(server.requests(), 1)
      assert.deepInclude(yield* Effect.flip(client.rename(sessionID, "t")), { _tag: "UnexpectedAnswer", status: 200 })
    }
  })
)

it.scoped(
  "HT-62: a server that is busy, fails, was stopped, drains or cuts the stream is asked again, from the last cursor",
  () =>
    Effect.gen(function* () {
      const asked: Array<string | undefined> = []
      const server = yield* Rude.serve((number, response, { url }) => {
        asked.push(url?.split("?")[1])
        switch (number) {
          case 0:
            return Rude.refuses(response, 429, { _tag: "TooManyRequests", retryAfterSeconds: 1, message: "no" })
          case 1:
            return Rude.refuses(response, 503, { _tag: "Stopping", message: "no" })
          case 2:
            response.writeHead(502)
            return response.end("<html>")
          case 3:
            response.writeHead(408)
            return response.end()
          case 4:
            Rude.streams(response, renamed(1), renamed(2).slice(0, 40))
            return response.end()
          case 5:
            Rude.streams(response, renamed(2), Rude.frame("end", { reason: "draining", cursor: "d1.00000000.1.2" }))
            return response.end()
          default:
            return Rude.streams(response, renamed(3))
        }
      })
      assert.deepEqual(yield* withoutDelays(seqs(yield* clientOf(server.url), 3)), [1, 2, 3])
      const last = (seq: number) => `after=d1.00000000.1.${seq}`
      assert.deepEqual(asked, [...Array.from({ length: 5 }, () => "after=0"), last(1), last(2)])
    })
)

it.scoped("HT-62: a connection without a byte for 45 seconds is dead", () =>
  Effect.gen(function* () {
    const server = yield* Rude.serve((number, response) => Rude.streams(response, renamed(number + 1)))
    const first = yield* Deferred.make<void>()
    const client = yield* clientOf(server.url)
    const reading = yield* client.events({ sessionID, after: 0 }).pipe(
      Stream.tap(() => Deferred.succeed(first, undefined)),
      Stream.take(2),
      Stream.runCount,
      Effect.fork
    )
    yield* Deferred.await(first)
    yield* TestClock.adjust("44 seconds")
    assert.strictEqual(server.requests(), 1)
    yield* TestClock.adjust("2 seconds")
    assert.strictEqual(yield* Fiber.join(reading), 2)
    assert.strictEqual(server.requests(), 2)
  })
)

it.scoped("HT-62: a stream gives up when no connection succeeded for two minutes", () =>
  Effect.gen(function* () {
    const conducts: ReadonlyArray<Rude.Conduct> = [
      (_number, response) => response.destroy(),
      // It begins each stream, and cuts it off before the first frame.
      (_number, response) => {
        Rude.streams(response)
        response.end()
      }
    ]
    for (const conduct of conducts) {
      const server = yield* Rude.serve(conduct)
      const failing = Effect.flip(seqs(yield* clientOf(server.url), 1))
      const failure = yield* Effect.raceFirst(failing, Effect.forever(TestClock.adjust("10 seconds")))
      assert.strictEqual(failure._tag, "ServerUnreachable")
      assert.isAtLeast(server.requests(), 5)
    }
  })
)

it.scoped("HT-69: a resume that goes on is waited for, and started once", () =>
  Effect.gen(function* () {
    const asked: Array<string> = []
    const tokens = { input: 0, output: 0, reasoning: 0, cache: { read: 0, write: 0 } }
    const session = { id: sessionID, location: { directory: "/" }, cost: 0, tokens, createdAt: 0, updatedAt: 0 }
    const server = yield* Rude.serve((number, response, { method, url }) => {
      asked.push(`${method} ${url}`)
      Rude.refuses(response, 200, { settled: number === 2, session })
    })
    yield* (yield* clientOf(server.url)).resume(sessionID)
    const [first = "", ...rest] = asked
    const [, id] = new RegExp(`^POST /sessions/${sessionID}/resume\\?id=(msg_\\w+)$`).exec(first) ?? []
    const later = `GET /sessions/${sessionID}/resumes/${id}`
    assert.deepEqual(rest, [later, later])
  })
)

it.scoped("HT-61: a connection after the seam gives no second one", () =>
  Effect.gen(function* () {
    const cursor = "d1.00000000.1.1"
    const seam = Rude.frame("replay.complete", { cursor }, cursor)
    const server = yield* Rude.serve((number, response) => {
      Rude.streams(response, ...(number === 0 ? [renamed(1), seam] : [seam, renamed(2)]))
      if (number === 0) response.end()
    })
    const client = yield* clientOf(server.url)
    const items = yield* client.eventsMarked({ sessionID }).pipe(Stream.take(3), Stream.runCollect, withoutDelays)
    assert.deepEqual(
      Chunk.toReadonlyArray(items).map((item) => (item.type === "replay.complete" ? item : item.seq)),
      [1, { type: "replay.complete", cursor: 1 }, 2]
    )
  })
)

it.scoped("HT-61: events of types that the client does not know move its cursor, and nothing else", () =>
  Effect.gen(function* () {
    const asked: Array<string | undefined> = []
    const server = yield* Rude.serve((number, response, { url }) => {
      asked.push(url?.split("?")[1])
      if (number > 0) return Rude.streams(response, renamed(6))
      const later = { ...envelope, seq: 5, type: "session.next.later", data: {} }
      Rude.streams(response, Rude.frame("event", later, "d1.00000000.1.5"), Rude.frame("news", {}))
      return response.end()
    })
    assert.deepEqual(yield* withoutDelays(seqs(yield* clientOf(server.url), 1)), [6])
    assert.deepEqual(asked, ["after=0", "after=d1.00000000.1.5"])
  })
)
