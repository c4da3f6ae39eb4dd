/** What goes on when a client is gone, and what a client may leave unread. */
import { it } from "@effect/vitest"
import { Deferred, Effect, Stream } from "effect"
import { assert } from "vitest"
import { temporaryFolder } from "../support/Harness.ts"
import { finish, held, says, textParts } from "../support/ScriptedModel.ts"
import {
  connect,
  deltasOf,
  fresh,
  openFor,
  runtimeOf,
  script,
  type Served,
  holdOne,
  withoutAgent
} from "./support/Served.ts"

const request = (served: Served) => script(served, (model) => model.request)

it.scopedLive("FR-10: a run goes on when its client is gone, and so do those that wait; both can be resumed", () =>
  Effect.gen(function* () {
    const served = yield* fresh()
    const gate = yield* Deferred.make<void>()
    yield* script(served, ({ answer }) =>
      Effect.zipRight(answer(held([], gate, [...textParts("t", "one"), finish()])), answer(says("two")))
    )
    const client = yield* connect(served.path)
    yield* client.ask({ op: "send", id: "m1", input: "first" })
    yield* client.untilType("start")
    yield* client.ask({ op: "send", id: "m2", input: "second" })
    // A refused repetition shows that the second is on disk.
    yield* client.ask({ op: "send", id: "m2", input: "other" })
    yield* client.untilType("error")
    yield* request(served)
    yield* client.leave
    yield* Deferred.succeed(gate, undefined)
    yield* request(served)
    const other = yield* connect(served.path)
    yield* other.ask({ op: "send", id: "m2", input: "second" })
    assert.strictEqual(deltasOf(yield* other.untilType("done")), "two")
    yield* other.ask({ op: "send", id: "m1", input: "first" })
    assert.strictEqual(deltasOf(yield* other.untilType("done")), "one")
  })
)

it.scopedLive(
  "SO-29: a client that sends no more is answered to the end of its runs, then told that no more comes",
  () =>
    Effect.gen(function* () {
      const served = yield* fresh()
      const gate = yield* holdOne(served)
      const client = yield* connect(served.path)
      yield* client.ask({ op: "send", id: "m1", input: "first" })
      yield* client.finish
      yield* client.untilType("start")
      yield* Deferred.succeed(gate, undefined)
      assert.strictEqual(deltasOf(yield* client.untilType("done")), "one")
      yield* client.ended
    })
)

it.scopedLive(
  "FR-6: a client that does not read holds back neither the run nor the other clients, and misses nothing",
  () =>
    Effect.gen(function* () {
      const served = yield* fresh()
      const [begin, said] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const piece = "0123456789abcde\n".repeat(1024)
      const pieces = 512
      const [start, , end] = textParts("t", piece)
      if (start === undefined || end === undefined) return yield* Effect.dieMessage("no parts")
      yield* script(served, ({ answer }) =>
        answer(
          Stream.concat(
            Stream.concat(
              held([start], begin),
              Stream.map(Stream.range(1, pieces), () => ({ type: "text-delta" as const, id: "t", delta: piece }))
            ),
            Stream.concat(
              Stream.fromIterable([end]),
              Stream.zipRight(Stream.execute(Deferred.succeed(said, undefined)), Stream.empty)
            )
          ).pipe(Stream.concat(Stream.make(finish())))
        )
      )
      const [idle, reading] = [yield* connect(served.path), yield* connect(served.path)]
      yield* idle.ask({ op: "send", id: "m1", input: "go" })
      yield* idle.untilType("start")
      idle.socket.pause()
      yield* reading.ask({ op: "send", id: "m1", input: "go" })
      yield* reading.untilType("start")
      yield* Deferred.succeed(begin, undefined)
      const whole = deltasOf(yield* reading.untilType("done"))
      assert.strictEqual(whole.length, piece.length * pieces)
      yield* Deferred.await(said)
      idle.socket.resume()
      assert.isTrue(deltasOf(yield* idle.untilType("done")) === whole)
    })
)

it.scopedLive("DC-18: what waits when the server stops is run when it is there again, and nothing is asked twice", () =>
  Effect.gen(function* () {
    const root = yield* temporaryFolder
    const before = yield* openFor({ root })
    const never = yield* Deferred.make<void>()
    yield* script(before, ({ answer }) => answer(held([], never)))
    const first = yield* connect(before.path)
    yield* first.ask({ op: "send", id: "m1", input: "first" })
    yield* first.untilType("start")
    yield* first.ask({ op: "send", id: "m2", input: "second" })
    yield* first.ask({ op: "send", id: "m2", input: "other" })
    yield* first.untilType("error")
    yield* before.close
    // The run that was cut off is told of, the prompt that waits is not.
    const last = yield* first.untilType("done")
    assert.deepInclude(last.at(-1), { id: "m1", status: "cancelled" })
    yield* first.ended
    const after = yield* openFor({ root })
    yield* script(after, ({ answer }) => answer(says("two")))
    const second = yield* connect(after.path)
    yield* second.ask({ op: "send", id: "m2", input: "second" })
    assert.strictEqual(deltasOf(yield* second.untilType("done")), "two")
    yield* second.ask({ op: "send", id: "m1", input: "first" })
    assert.strictEqual((yield* second.untilType("done")).at(-1)?.["status"], "cancelled")
    assert.strictEqual(yield* script(after, ({ pending }) => pending), 1)
    yield* after.close
  })
)

it.scopedLive("SO-33: what cannot begin is told with a sentence and kept, and runs when it can", () =>
  Effect.gen(function* () {
    const root = yield* temporaryFolder
    const { agent, refused, serve, served } = yield* withoutAgent(root)
    assert.deepInclude(refused, { type: "error", id: "m2", code: "EIO" })
    assert.include(String(refused["message"]), "coder")
    yield* served.close
    const again = yield* openFor({ root, runtime: { agents: [agent] }, serve })
    yield* script(again, ({ answer }) => answer(says("two")))
    const third = yield* connect(again.path)
    yield* third.ask({ op: "send", id: "m2", input: "second" })
    assert.strictEqual(deltasOf(yield* third.untilType("done")), "two")
    const { items } = yield* runtimeOf(again, (sessions) => sessions.list())
    assert.lengthOf(items, 1)
    yield* again.close
  })
)
