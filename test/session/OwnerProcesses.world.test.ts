/**
 * Owners in real processes that are stopped, continued, killed, and put into other namespaces. `ask` answers `busy` only
 * when it saw the owner renew. What is waited for is a line; time passes only where a process is to stand still for it.
 */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { temporaryFolder } from "../support/Harness.ts"
import { program, startWorker, type Worker } from "./support/Workers.ts"
import { lacks } from "../support/Parts.ts"

class Script extends Context.Tag("test/Script")<Script, string>() {}

const sessionID = SessionID.make("ses_owned")

/** A starter of processes on one new file, with leases of this length. */
const processes = Effect.fnUntraced(function* (leaseMs: number) {
  const filename = join(yield* temporaryFolder, "daybook.db")
  const script = yield* Script
  return (what: "own" | "ask", by?: ReadonlyArray<string>, busyUntil?: string) => {
    const order = { do: what, filename, sessionID, leaseMs, ...(busyUntil === undefined ? {} : { busyUntil }) }
    return Effect.tap(startWorker(script, order, by), says("waiting"))
  }
})

const says = (expected: string) => (worker: Worker) =>
  Effect.map(worker.line, (line) => assert.strictEqual(line, expected))

/** The worker owns the session under this epoch; its id. */
const owns = (worker: Worker, epoch: number) =>
  Effect.map(worker.line, (line) => {
    const [word, number, ownerID = ""] = line.split(" ")
    assert.deepStrictEqual([word, number], ["owned", String(epoch)])
    return ownerID
  })

/** The machine is suspended for longer than the lease. */
const suspended = Effect.sleep("3 seconds")

/** Longer than a lease of a second. */
const aLease = Effect.sleep("1500 millis")

/** Less than the lease, and enough for a process that waits to look at the owner a few times. */
const someLooks = Effect.sleep("300 millis")

// Each waits for leases of its own to end.
describe.concurrent("owners in processes", () => {
  layer(Layer.scoped(Script, program), { excludeTestServices: true })((it) => {
    it.scoped(
      "EX-O2: a suspended machine takes no session away: owner and waiter stand still, and go on as before",
      () =>
        Effect.gen(function* () {
          const start = yield* processes(2_000)
          const owner = yield* start("own")
          const ownerID = yield* owns(owner, 1)
          const waiter = yield* start("own")
          // By the time of this answer the waiter has looked as well.
          yield* says(`busy ${ownerID}`)(yield* start("ask"))
          yield* owner.pause
          yield* someLooks
          yield* waiter.pause
          yield* suspended
          yield* waiter.goOn
          yield* someLooks
          yield* owner.goOn
          yield* says(`busy ${ownerID}`)(yield* start("ask"))
          yield* owner.kill
          yield* owns(waiter, 2)
        })
    )

    it.scoped("EX-O2: an owner that is stopped for ever is replaced after a lease, and is told when it goes on", () =>
      Effect.gen(function* () {
        const start = yield* processes(1_000)
        const owner = yield* start("own")
        yield* owns(owner, 1)
        yield* owner.pause
        yield* says("free")(yield* start("ask"))
        const waiter = yield* start("own")
        yield* owns(waiter, 3)
        yield* owner.goOn
        yield* says("lost")(owner)
      })
    )

    it.scoped.skipIf(lacks("linux"))(
      "EX-402: an owner whose event loop is busy for longer than its lease keeps the session",
      () =>
        Effect.gen(function* () {
          const start = yield* processes(1_000)
          const done = join(yield* temporaryFolder, "done")
          const owner = yield* start("own", [], done)
          const ownerID = yield* owns(owner, 1)
          const waiter = yield* start("own")
          yield* aLease
          // It is known to be alive although it renews nothing.
          yield* says(`busy ${ownerID}`)(yield* start("ask"))
          writeFileSync(done, "")
          yield* says(`busy ${ownerID}`)(yield* start("ask"))
          yield* owner.kill
          yield* owns(waiter, 2)
        })
    )

    it.scoped(
      "EX-O3: an owner that was killed on this machine is seen at once, by one that waits and one that comes",
      () =>
        Effect.gen(function* () {
          // No test waits for such a lease to end.
          const start = yield* processes(60_000)
          const owner = yield* start("own")
          yield* owns(owner, 1)
          const waiter = yield* start("own")
          yield* owner.kill
          yield* owns(waiter, 2)
          yield* waiter.kill
          yield* says("free")(yield* start("ask"))
        })
    )

    it.scoped.skipIf(lacks("admin"))(
      "EX-O3: a process in another pid namespace neither takes a living owner for dead nor loses its session to one",
      () =>
        Effect.gen(function* () {
          const apart = ["unshare", "--pid", "--fork", "--kill-child", "--uts"]
          const replaces = Effect.fnUntraced(function* (first: ReadonlyArray<string>, second: ReadonlyArray<string>) {
            const start = yield* processes(2_000)
            const owner = yield* start("own", first)
            const ownerID = yield* owns(owner, 1)
            const waiter = yield* start("own", second)
            yield* says(`busy ${ownerID}`)(yield* start("ask", second))
            yield* owner.kill
            yield* owns(waiter, 2)
          })
          yield* Effect.all([replaces([], apart), replaces(apart, [])], { concurrency: "unbounded", discard: true })
        })
    )
  })
})
