/** The streams of the client, over connections that break. */
import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Option, Queue, Stream } from "effect"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { shellTypes } from "../../packages/log/src/events/LiveShellEvents.ts"
import { draft } from "../../packages/log/src/events/SessionEvents.ts"
import { begin, renamed, session } from "../contracts/Samples.ts"
import { newSession, say } from "../support/Harness.ts"
import { finish, ScriptedModel, textParts } from "../support/ScriptedModel.ts"
import { Served } from "../server/http/support/ServedApi.ts"
import * as Cutter from "./support/Cutter.ts"
import { brokenFeed, brokenSession } from "./support/Broken.ts"
import { clientOf, layer as served, withoutDelays } from "./support/ServedClient.ts"

layer(served())("the streams of a client", (it) => {
  it.scoped("HT-61: over connections that break within frames, every event comes once, in order, with one seam", () =>
    brokenSession(60, 4)
  )

  it.scoped("HT-61: the feed over connections that break gives the events of all sessions once, in order", () =>
    brokenFeed(5, 20)
  )

  it.scoped("HT-61: over a connection that breaks within a text, its deltas go on behind those that came", () =>
    Effect.gen(function* () {
      const [sessions, model, { url }] = [yield* Sessions, yield* ScriptedModel, yield* Served]
      const { id } = yield* newSession()
      const cutter = yield* Cutter.make(url, () => undefined)
      const client = yield* clientOf(cutter.url)
      const [start, one, two, three, end] = textParts("t", "one ", "two ", "three")
      const [middle, last] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const parts = (...some: ReadonlyArray<typeof start>) =>
        Stream.fromIterable(some.flatMap((part) => (part === undefined ? [] : [part])))
      const then = (gate: Deferred.Deferred<void>, ...some: ReadonlyArray<typeof start>) =>
        Stream.concat(Stream.execute(Deferred.await(gate)), parts(...some))
      yield* model.answer(
        parts(start, one).pipe(Stream.concat(then(middle, two)), Stream.concat(then(last, three, end, finish())))
      )
      const heard = yield* client.follow({ sessionID: id, live: true }).pipe(
        Stream.filterMap((item) => {
          if (item.frame === "live" && item.live.type === "session.next.text.delta")
            return Option.some(item.live.data.delta)
          return item.frame === "event" && item.event.type === "session.next.renamed"
            ? Option.some("renamed")
            : Option.none()
        }),
        Stream.toQueueOfElements(),
        withoutDelays
      )
      const next = Effect.flatten(Queue.take(heard))
      yield* say(id, "hello")
      assert.strictEqual(yield* next, "one ")
      const before = cutter.connections()
      yield* cutter.cut
      yield* sessions.rename(id, "after the cut")
      assert.strictEqual(yield* next, "renamed")
      assert.isAbove(cutter.connections(), before)
      yield* Deferred.succeed(middle, undefined)
      assert.strictEqual(yield* next, "two ")
      yield* Deferred.succeed(last, undefined)
      yield* sessions.wait(id)
    })
  )

  it.scoped("HT-54, HT-56: only the events of live shells are followed, and the cursor passes the others", () =>
    Effect.gen(function* () {
      const [log, { url }, id] = [yield* EventLog, yield* Served, session()]
      yield* begin(id, 3)
      const opened = draft("session.next.shell.opened", { shellID: "1_local", transport: "local" })
      const closed = draft("session.next.shell.closed", { shellID: "1_local", reason: "destroyed" })
      yield* log.append(id, [opened, renamed("a"), closed, renamed("b")])
      const client = yield* clientOf(url)
      const items = yield* Stream.runCollect(client.follow({ sessionID: id, types: shellTypes, follow: false }))
      const types = [...items].map((item) => (item.frame === "event" ? item.event.type : item.frame))
      assert.deepEqual(types, ["session.next.shell.opened", "session.next.shell.closed", "replay.complete"])
      const { cursor } = yield* client.head(id)
      assert.deepInclude([...items].at(-1), { cursor })
    })
  )
})
