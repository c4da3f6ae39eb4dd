/** The end of a server, as clients in every state read it. Each has its own server, so that no state hides another. */
import { it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Stream } from "effect"
import { mkdir } from "node:fs/promises"
import { join } from "node:path"
import { assert } from "vitest"
import { temporaryFolder } from "../support/Harness.ts"
import { hasty } from "../support/HastyClock.ts"
import { finish, says, textParts } from "../support/ScriptedModel.ts"
import { connect, deltasOf, holdOne, openFor, script, typesOf, uid, type Client } from "./support/Served.ts"

type Server = Effect.Effect.Success<ReturnType<typeof openFor>>

const farewell = { type: "error", code: "EHOSTDOWN" }

/** Brings a client into a state; the ids that are to have an error of their own. */
const states: ReadonlyArray<
  readonly [string, (served: Server, client: Client) => Effect.Effect<ReadonlyArray<string>>]
> = [
  ["that is silent", (_, client) => Effect.as(Effect.zipRight(client.ask({ op: "ping" }), client.next), [])],
  [
    "in the middle of a line",
    (_, client) =>
      Effect.as(Effect.all([client.ask({ op: "ping" }), client.write('{"op":"send","id":"half'), client.next]), [])
  ],
  [
    "whose prompt is not admitted yet",
    (served, client) =>
      Effect.gen(function* () {
        yield* Effect.promise(() => mkdir(join(served.root, `home/${uid}/agent/build/root/work`), { recursive: true }))
        // Another run holds the session where it is; this server's stop settles it too late for the admission.
        yield* holdOne(served)
        yield* client.ask({ op: "send", id: "m1", input: "first" })
        yield* client.untilType("start")
        yield* client.ask({ op: "send", id: "m2", cwd: "/work", input: "second" })
        yield* client.untilType("queued")
        return ["m2"]
      })
  ],
  [
    "whose prompt waits behind a run",
    (served, client) =>
      Effect.gen(function* () {
        yield* holdOne(served)
        yield* client.ask({ op: "send", id: "m1", input: "first" })
        yield* client.untilType("start")
        yield* client.ask({ op: "send", id: "m2", input: "second" })
        yield* client.untilType("queued")
        return ["m2"]
      })
  ],
  [
    "that has ended its side and waits",
    (served, client) =>
      Effect.gen(function* () {
        yield* holdOne(served)
        yield* client.ask({ op: "send", id: "m1", input: "first" })
        yield* client.untilType("start")
        yield* client.ask({ op: "send", id: "m2", input: "second" })
        yield* client.finish
        yield* client.untilType("queued")
        return ["m2"]
      })
  ]
]

for (const [what, bring] of states) {
  it.scopedLive(`SO-79: at the end of the server a client ${what} is told why, with a code`, () =>
    Effect.gen(function* () {
      const served = yield* openFor({ root: yield* temporaryFolder })
      const client = yield* connect(served.path)
      const ids = yield* bring(served, client)
      yield* served.close
      const frames = yield* client.rest
      assert.deepInclude(frames.at(-1), farewell)
      for (const id of ids) {
        assert.deepInclude(
          frames.find((frame) => frame["type"] === "error" && frame["id"] === id),
          farewell
        )
      }
    })
  )
}

it.scopedLive("SO-79: a client whose run is cut off reads its done, then why the connection ends", () =>
  Effect.gen(function* () {
    const served = yield* openFor({ root: yield* temporaryFolder })
    yield* holdOne(served)
    const [client, temp] = [yield* connect(served.path), yield* connect(served.path)]
    yield* client.ask({ op: "send", id: "m1", input: "first" })
    yield* client.untilType("start")
    yield* temp.ask({ op: "send", id: "t1", scope: "temp", input: "first" })
    yield* temp.untilType("start")
    yield* served.close
    for (const each of [client, temp]) {
      const frames = yield* each.rest
      assert.deepStrictEqual(typesOf(frames), ["done", "error"])
      assert.strictEqual(frames[0]?.["status"], "cancelled")
      assert.deepInclude(frames[1], farewell)
    }
  })
)

it.scopedLive("SO-79: a client whose done waits for the files is told why it does not come", () =>
  Effect.gen(function* () {
    const never = yield* Deferred.make<void>()
    const served = yield* openFor({ root: yield* temporaryFolder, reached: () => Deferred.await(never) })
    yield* script(served, ({ answer }) => answer(says("one")))
    const client = yield* connect(served.path)
    yield* client.ask({ op: "send", id: "m1", input: "first" })
    yield* client.untilType("message")
    yield* served.close
    const frames = yield* client.rest
    assert.deepStrictEqual(typesOf(frames), ["error", "error"])
    assert.deepInclude(frames[0], { ...farewell, id: "m1" })
    assert.deepInclude(frames[1], farewell)
  })
)

it.scopedLive(
  "SO-79: a client in the middle of a replay that reads again has whole frames, and why there are no more",
  () =>
    Effect.gen(function* () {
      const root = yield* temporaryFolder
      const served = yield* openFor({ root })
      const text = "all work and no play. ".repeat(10_000)
      yield* script(served, ({ answer }) => Effect.replicateEffect(answer(says(text)), 4))
      const client = yield* connect(served.path)
      for (let at = 0; at < 4; at++) {
        yield* client.ask({ op: "send", id: `m${at}`, input: "go" })
        yield* client.untilType("done")
      }
      client.socket.pause()
      yield* client.ask({ op: "resume" })
      // The replay is longer than what the system holds for a client that does not read.
      const other = yield* connect(served.path)
      yield* other.ask({ op: "ping" })
      yield* other.next
      const closing = yield* Effect.fork(served.close)
      // The other is told when the answers end: only then the client reads again.
      assert.deepInclude(yield* other.next, farewell)
      client.socket.resume()
      const frames = yield* client.rest
      assert.deepInclude(frames.at(-1), farewell)
      yield* Fiber.join(closing)
    })
)

it.scopedLive("SO-79: a client that never reads does not keep the server from its end", () =>
  Effect.gen(function* () {
    // It waits five seconds for its clients to read that it stops.
    const served = yield* Effect.withClock(openFor({ root: yield* temporaryFolder }), hasty(20))
    const client = yield* connect(served.path)
    const piece = "0123456789abcde\n".repeat(4096)
    const [begin, , end] = textParts("t", piece)
    if (begin === undefined || end === undefined) return yield* Effect.dieMessage("no parts")
    yield* script(served, ({ answer }) =>
      answer(
        Stream.concat(
          Stream.make(begin),
          Stream.map(Stream.range(1, 64), () => ({ type: "text-delta" as const, id: "t", delta: piece }))
        ).pipe(Stream.concat(Stream.make(end, finish())))
      )
    )
    yield* client.ask({ op: "send", id: "m1", input: "go" })
    yield* client.untilType("start")
    client.socket.pause()
    const reading = yield* connect(served.path)
    yield* reading.ask({ op: "send", id: "m1", input: "go" })
    assert.strictEqual(deltasOf(yield* reading.untilType("done")).length, piece.length * 64)
    yield* served.close
    assert.deepInclude((yield* reading.rest).at(-1), farewell)
  })
)
