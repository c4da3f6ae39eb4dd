/** Streams of events over TCP. */
import { join } from "node:path"
import { assert, it, layer } from "@effect/vitest"
import { Deferred, Effect, Option, Queue, Schema, Stream, Struct } from "effect"
import { Sessions } from "../../../packages/core/src/session/Sessions.ts"
import * as Store from "../../../packages/log/src/Store.ts"
import { newSession, say, scene, temporaryFolder } from "../../support/Harness.ts"
import { pruned } from "../../support/Pruning.ts"
import { finish, says, ScriptedModel, textParts } from "../../support/ScriptedModel.ts"
import { allFrames, frames } from "./support/Frames.ts"
import * as ServedApi from "./support/ServedApi.ts"
import { answer } from "./support/ServedApi.ts"

const decodeExpired = Schema.decodeUnknown(Schema.Struct({ floor: Schema.Int, floorCursor: Schema.String }))

/** Runs a prompt whose answer is this text. */
const run = Effect.fnUntraced(function* (id: Parameters<typeof say>[0], text: string) {
  yield* (yield* ScriptedModel).answer(says(text))
  yield* say(id, "hello")
  yield* (yield* Sessions).wait(id)
})

layer(ServedApi.layer())("streams of events", (it) => {
  it.effect("HT-45: the feed has its seam too, and ends there if it is not followed", () =>
    Effect.gen(function* () {
      const { id } = yield* newSession()
      yield* say(id, "one", { resume: false })
      const first = yield* allFrames("/events?follow=0")
      assert.deepEqual(first.slice(-2).map(Struct.get("frame")), ["replay.complete", "end"])
      const end = first.at(-1)
      const cursor = end?.frame === "end" ? end.cursor : undefined
      yield* say(id, "two", { resume: false })
      const later = yield* allFrames(`/events?follow=0&after=${cursor}`)
      assert.lengthOf(later, 3)
    })
  )

  it.effect("HT-54: only events of the named types are sent, and the cursor passes the others", () =>
    Effect.gen(function* () {
      const { id } = yield* newSession()
      yield* (yield* Sessions).rename(id, "named")
      yield* say(id, "hello", { resume: false })
      const head = yield* answer(`/sessions/${id}/head`)
      for (const path of [`/sessions/${id}/events?follow=0`, "/events?follow=0"]) {
        const found = yield* allFrames(`${path}&type=session.next.renamed`)
        const types = found.flatMap((each) => (each.frame === "event" ? [each.event.type] : []))
        assert.deepEqual([...new Set(types)], ["session.next.renamed"])
      }
      const [, , end] = yield* allFrames(`/sessions/${id}/events?follow=0&type=session.next.renamed`)
      assert.deepInclude(end, { reason: "complete" })
      assert.deepInclude(head.body, { cursor: end?.frame === "end" ? end.cursor : "" })
      assert.strictEqual((yield* answer(`/sessions/${id}/events?type=session.next.nothing`)).status, 400)
    })
  )

  it.scoped("HT-46: deltas of the running turn come after the seam, and end with the stored text", () =>
    Effect.gen(function* () {
      const { id, model, sessions } = yield* scene()
      const [middle, last] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const [start, one, two, three, end] = textParts("t", "one ", "two ", "three")
      const parts = [start, one].flatMap((part) => (part === undefined ? [] : [part]))
      const then = (gate: Deferred.Deferred<void>, part: typeof one) =>
        Stream.flatMap(Stream.fromEffect(Deferred.await(gate)), () => Stream.make(part ?? finish()))
      yield* model.answer(
        Stream.fromIterable(parts).pipe(
          Stream.concat(then(middle, two)),
          Stream.concat(then(last, three)),
          Stream.concat(Stream.fromIterable([end ?? finish(), finish()]))
        )
      )
      const heard = yield* Stream.toQueueOfElements(frames(`/sessions/${id}/events?live=1`))
      yield* say(id, "hello")
      const until = Effect.fnUntraced(function* (text: string) {
        let said = ""
        while (!said.endsWith(text)) {
          const frame = yield* Effect.flatten(Queue.take(heard))
          if (frame.frame === "live" && frame.live.type === "session.next.text.delta") said += frame.live.data.delta
        }
        return said
      })
      assert.strictEqual(yield* until("one "), "one ")
      // A reader that comes in the middle gets the text so far.
      const late = yield* frames(`/sessions/${id}/events?live=1`).pipe(
        Stream.filterMap((frame) =>
          frame.frame === "live" && frame.live.type === "session.next.text.delta"
            ? Option.some(frame.live.data.delta)
            : Option.none()
        ),
        Stream.toQueueOfElements()
      )
      assert.strictEqual(yield* Effect.flatten(Queue.take(late)), "one ")
      yield* Deferred.succeed(middle, undefined)
      assert.strictEqual(yield* until("two "), "two ")
      assert.strictEqual(yield* Effect.flatten(Queue.take(late)), "two ")
      yield* Deferred.succeed(last, undefined)
      yield* sessions.wait(id)
      const rest: Array<string> = []
      while (rest.at(-1) !== "session.next.activity.settled") {
        const frame = yield* Effect.flatten(Queue.take(heard))
        rest.push(frame.frame === "event" ? frame.event.type : frame.frame === "live" ? frame.live.type : frame.frame)
      }
      const stored = rest.indexOf("session.next.text.ended")
      assert.isAtLeast(stored, 0)
      assert.notInclude(rest.slice(stored), "session.next.text.delta")
    })
  )
})

it.scopedLive("HT-43: an expired cursor has the floor as a cursor and the path of a snapshot, and both work", () =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    const filename = join(folder, "daybook.sqlite")
    yield* Effect.gen(function* () {
      const { id } = yield* newSession()
      yield* run(id, "one")
      yield* Effect.provide(pruned(id), Store.layer({ filename }))
      const { body, status } = yield* answer(`/sessions/${id}/events`)
      assert.strictEqual(status, 410)
      assert.deepInclude(body, { _tag: "CursorExpired", cursor: -1, snapshot: `/sessions/${id}/snapshot` })
      const { floor, floorCursor } = yield* decodeExpired(body)
      const snapshot = yield* answer(`/sessions/${id}/snapshot`)
      assert.deepInclude(snapshot.body, { sessionID: id, cursor: floorCursor })
      const rest = yield* allFrames(`/sessions/${id}/events?follow=0&after=${floorCursor}`)
      const [first] = rest.flatMap((each) => (each.frame === "event" ? [each.event.seq] : []))
      assert.isTrue(first === undefined || first === floor + 1)
      assert.strictEqual(rest.at(-1)?.frame, "end")
      const feed = yield* answer("/events")
      assert.deepInclude(feed.body, { _tag: "CursorExpired", snapshot: "/snapshots" })
      assert.deepEqual((yield* answer("/snapshots")).body, [snapshot.body])
    }).pipe(Effect.provide(ServedApi.layer({ filename })))
  })
)
