/** The exporter in a thread, with real threads, folders and databases; its files are compared with those of an exporter in this thread. */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Worker } from "node:worker_threads"
import { afterAll, assert, beforeAll, it } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Layer, Logger, Queue, Scope } from "effect"
import { Exporter } from "../../packages/files/src/Exporter.ts"
import * as ExporterThread from "../../packages/files/src/ExporterThread.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { temporaryFolder } from "../support/Database.ts"
import { begin, renamed, session } from "../support/Logs.ts"
import { exportAll, exporterAt, storeAt, tree } from "./support/Exports.ts"
import { type ThreadProgram, threadProgram } from "./support/exportThread.ts"

const uid = 7
const house = "home/7/agent/build/session"

let program: ThreadProgram
beforeAll(async () => {
  program = await threadProgram()
})
afterAll(() => program.remove())

interface Place {
  readonly root: string
  readonly filename: string
  /** Another folder, for a fresh export. */
  readonly fresh: string
}

const withStore = <A, E, R>(use: (place: Place) => Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    const filename = join(folder, "store.db")
    const place = { root: join(folder, "ctx"), fresh: join(folder, "fresh"), filename }
    return yield* Effect.provide(use(place), storeAt(filename))
  })

const threaded = ({ filename, root }: Place, spawn = program.spawn) =>
  Effect.map(Layer.build(Layer.fresh(ExporterThread.layer({ root, uid, filename, spawn }))), (context) =>
    Context.get(context, Exporter)
  )

/** Ends the newest thread at once, as a crash does. */
const crash = Effect.promise(async () => program.threads.at(-1)?.terminate())

const titleOf = ({ root }: Place, id: string) => readFileSync(join(root, house, id, "meta.json"), "utf8")

it.scoped("FI-117: an exporter in a thread writes the bytes and permissions that one in the process writes", () =>
  withStore((place) =>
    Effect.gen(function* () {
      const log = yield* EventLog
      const [one, two] = [session("one"), session("two")]
      yield* begin(one)
      yield* begin(two)
      const exporter = yield* threaded(place)
      const caught = yield* exporter.catchUp
      assert.strictEqual(caught.sessions, 2)
      const [last] = yield* log.append(two, [renamed("later")])
      yield* exporter.exportSession(two)
      assert.include(titleOf(place, two), "later")
      assert.strictEqual((yield* exporter.rebuild(one)).sessions, 1)
      assert.strictEqual((yield* exporter.catchUp).position, last.position)
      assert.strictEqual(yield* exporter.position, last.position)
      yield* exportAll({ root: place.fresh, uid })
      assert.deepStrictEqual(tree(place.root), tree(place.fresh))
    })
  )
)

it.scoped("FI-117: its errors are those of an exporter in the process, with their fields", () =>
  withStore((place) =>
    Effect.gen(function* () {
      const exporter = yield* threaded(place)
      const unknown = yield* Effect.flip(exporter.exportSession("ses_nowhere"))
      assert.deepInclude(unknown, { _tag: "SessionNotFound", sessionID: "ses_nowhere" })
      const busy = yield* Effect.flip(Effect.scoped(threaded(place)))
      assert.deepInclude(busy, { _tag: "RootBusy", root: place.root })
    })
  )
)

it.scoped("FI-117: findings of the thread reach the subscribers, and its warnings the log", () => {
  const lines = Effect.runSync(Queue.unbounded<string>())
  const logger = Logger.make(({ message }) => lines.unsafeOffer(String(message)))
  return withStore((place) =>
    Effect.gen(function* () {
      const id = session("one")
      yield* begin(id)
      const exporter = yield* threaded(place)
      yield* exporter.catchUp
      const findings = yield* exporter.findings
      writeFileSync(join(place.root, house, id, "cwd"), "elsewhere\n")
      yield* exporter.rebuild(id)
      const { aside, kind } = yield* findings.take
      assert.deepStrictEqual([kind, aside], ["changed", `${house}/${id}/cwd.aside.1`])
      assert.include(yield* lines.take, "cwd.aside.1")
    })
  ).pipe(Effect.provide(Logger.replace(Logger.defaultLogger, logger)))
})

it.scoped("FI-118: while it follows, `reached` returns when the files reflect the event", () =>
  withStore((place) =>
    Effect.gen(function* () {
      const log = yield* EventLog
      const id = session("one")
      yield* begin(id)
      const exporter = yield* threaded(place)
      yield* Effect.forkScoped(exporter.follow)
      for (const title of ["first", "second", "third"]) {
        const [last] = yield* log.append(id, [renamed(title)])
        yield* exporter.reached(last.position)
        assert.include(titleOf(place, id), title)
      }
    })
  )
)

it.scoped("FI-118: an interrupted follower has ended its batch, and `reached` then exports the rest", () =>
  withStore((place) =>
    Effect.gen(function* () {
      const log = yield* EventLog
      const id = session("one")
      yield* begin(id)
      const exporter = yield* threaded(place)
      const following = yield* Effect.forkScoped(exporter.follow)
      yield* exporter.reached(1)
      yield* log.append(id, [renamed("while it stops")])
      yield* following.interruptAsFork(following.id())
      yield* following.await
      const [last] = yield* log.append(id, [renamed("after it stopped")])
      yield* exporter.reached(last.position)
      assert.include(titleOf(place, id), "after it stopped")
    })
  )
)

it.scoped("FI-119: the end of the scope ends the thread and frees the root", () =>
  withStore((place) =>
    Effect.gen(function* () {
      yield* begin(session("one"))
      const ended = yield* Deferred.make<void>()
      yield* Effect.scoped(
        Effect.gen(function* () {
          const exporter = yield* threaded(place)
          program.threads.at(-1)?.once("exit", () => Deferred.unsafeDone(ended, Exit.void))
          yield* Effect.forkScoped(exporter.follow)
          yield* exporter.reached(1)
        })
      )
      yield* Deferred.await(ended)
      yield* Effect.scoped(Effect.flatMap(exporterAt({ root: place.root, uid }), ({ catchUp }) => catchUp))
    })
  )
)

it.scoped(
  "FI-119: after the thread ended at any instant, the next export starts another one and the files equal a fresh export",
  () =>
    withStore((place) =>
      Effect.gen(function* () {
        const log = yield* EventLog
        const exporter = yield* threaded(place)
        const before = program.threads.length
        for (let round = 0; round < 3; round++) {
          const id = session(`s${round}`)
          yield* begin(id)
          yield* log.append(id, [renamed(`round ${round}`), renamed("again")])
          const exporting = yield* Effect.fork(Effect.either(exporter.catchUp))
          // The thread is killed some steps after its request.
          yield* Effect.repeatN(Effect.yieldNow(), round)
          yield* crash
          const found = yield* exporting.await
          if (Exit.isSuccess(found) && found.value._tag === "Left")
            assert.strictEqual(found.value.left._tag, "ExportThreadEnded")
        }
        yield* exporter.catchUp
        assert.isAbove(program.threads.length, before)
        yield* exportAll({ root: place.fresh, uid })
        assert.deepStrictEqual(tree(place.root), tree(place.fresh))
      })
    )
)

it.scoped("FI-119: a follower goes on in another thread, and no run waits for the one that ended", () =>
  withStore((place) =>
    Effect.gen(function* () {
      const log = yield* EventLog
      const id = session("one")
      yield* begin(id)
      const exporter = yield* threaded(place)
      yield* Effect.forkScoped(exporter.follow)
      yield* exporter.reached(1)
      yield* crash
      const [last] = yield* log.append(id, [renamed("after the crash")])
      yield* exporter.reached(last.position)
      assert.include(titleOf(place, id), "after the crash")
    })
  )
)

it.scoped("FI-119: a thread that cannot start is an error that says why", () =>
  withStore((place) =>
    Effect.gen(function* () {
      const failing = () => new Worker("throw new Error('no memory')", { eval: true })
      const scope = yield* Scope.make()
      const error = yield* Effect.flip(Scope.extend(threaded(place, failing), scope))
      assert.deepInclude(error, { _tag: "ExportThreadEnded", details: "no memory" })
      yield* Scope.close(scope, Exit.void)
    })
  )
)
