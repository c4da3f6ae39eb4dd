import { assert, it } from "@effect/vitest"
import { Chunk, Deferred, Effect, Stream } from "effect"
import type { SessionEvent } from "../../../packages/log/src/events/SessionEvents.ts"
import { EventLog, LogUnavailable } from "../../../packages/log/src/log/EventLog.ts"
import * as Hubs from "../../../packages/server/src/http/Hubs.ts"
import { newSession, runtime, say } from "../../support/Harness.ts"

/** The events 1, 2, ... of a session. */
const stored = (count: number) =>
  Effect.gen(function* () {
    const { id } = yield* newSession()
    for (let n = 0; n < count; n++) yield* say(id, `prompt ${n}`, { resume: false })
    return (yield* (yield* EventLog).read({ sessionID: id, after: 0 })).events
  }).pipe(Effect.orDie, Effect.provide(runtime()))

/** A hub at a position, whose tail gives the events as one chunk after the gate, and then fails. */
const opened = (latest: number, events: ReadonlyArray<SessionEvent>) =>
  Effect.gen(function* () {
    const gate = yield* Deferred.make<void>()
    const failed = new LogUnavailable({ operation: "read", reason: "io", cause: undefined })
    const chunk = Stream.fromChunk(Chunk.fromIterable(events))
    const hub = yield* Hubs.makeHub<LogUnavailable>({
      latest: Effect.succeed(latest),
      positionOf: ({ seq }) => seq,
      pull: () =>
        Hubs.pullOf(
          Stream.concat(
            Stream.drain(Stream.fromEffect(Deferred.await(gate))),
            Stream.concat(chunk, Stream.fail(failed))
          )
        )
    })
    return { hub, open: Deferred.succeed(gate, undefined), failed }
  })

const makeReader = Effect.map(Deferred.make<LogUnavailable>(), (failed) => {
  const seqs: Array<number> = []
  return {
    seqs,
    failed: Deferred.await(failed),
    take: (events: ReadonlyArray<SessionEvent>) => void seqs.push(...events.map(({ seq }) => seq)),
    fail: (error: LogUnavailable) => Deferred.unsafeDone(failed, Effect.succeed(error))
  }
})

it.scoped("HT-40: an attached reader gets each event after its position once, also where the tail is behind it", () =>
  Effect.gen(function* () {
    const { failed, hub, open } = yield* opened(2, (yield* stored(6)).slice(2))
    const [at2, at4, at6] = [yield* makeReader, yield* makeReader, yield* makeReader]
    assert.isTrue(hub.attach(at2, 2))
    assert.isTrue(hub.attach(at4, 4))
    assert.isTrue(hub.attach(at6, 6))
    yield* open
    assert.strictEqual(yield* at6.failed, failed)
    assert.deepStrictEqual([at2.seqs, at4.seqs, at6.seqs], [[3, 4, 5, 6], [5, 6], []])
  })
)

it.scoped("HT-40: a reader behind what was given out is not attached", () =>
  Effect.gen(function* () {
    const { hub } = yield* opened(2, [])
    assert.isFalse(hub.attach(yield* makeReader, 1))
  })
)

it.scoped("HT-50: a detached reader gets nothing more, and the others do", () =>
  Effect.gen(function* () {
    const { hub, open } = yield* opened(0, yield* stored(2))
    const [gone, other] = [yield* makeReader, yield* makeReader]
    hub.attach(gone, 0)
    hub.attach(other, 0)
    hub.detach(gone)
    yield* open
    yield* other.failed
    assert.deepStrictEqual([gone.seqs, other.seqs], [[], [1, 2]])
  })
)

it.scoped("HT-48: a reader that attaches after the hub failed gets the failure", () =>
  Effect.gen(function* () {
    const { failed, hub, open } = yield* opened(0, [])
    const first = yield* makeReader
    hub.attach(first, 0)
    yield* open
    yield* first.failed
    const late = yield* makeReader
    hub.attach(late, 0)
    assert.strictEqual(yield* late.failed, failed)
  })
)
