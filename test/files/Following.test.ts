/**
 * The follower over real folders: what it gets over, what it says of itself, and what it puts back in the background. Time
 * is the test's own.
 */
import { execFileSync } from "node:child_process"
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, statfsSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect, Fiber, Logger, Option, Queue, TestClock } from "effect"
import { processUid } from "../../packages/files/src/disk/FileCalls.ts"
import * as Following from "../../packages/files/src/export/Following.ts"
import { follower } from "../../packages/files/src/record/LedgerFile.ts"
import { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { memoryLog, temporaryFolder } from "../support/Database.ts"
import { begin, renamed, session } from "../support/Logs.ts"
import { exportAll, exporterAt, tree, withStore } from "./support/Exports.ts"

const uid = 7
const house = "home/7/agent/build/session"

/** What is logged while the effect runs, with the level. */
const logged = <A, E, R>(use: (lines: ReadonlyArray<string>) => Effect.Effect<A, E, R>) => {
  const lines: Array<string> = []
  const logger = Logger.make(({ logLevel, message }) => void lines.push(`${logLevel.label} ${String(message)}`))
  return Effect.provide(use(lines), Logger.replace(Logger.defaultLogger, logger))
}

const stateOf = (root: string) => Effect.map(follower(root, processUid), Option.getOrUndefined)

/** Lets time go on until the effect has ended. */
const during = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const fiber = yield* Effect.fork(effect)
    while (Option.isNone(yield* Fiber.poll(fiber))) yield* TestClock.adjust("1 second")
    return yield* Fiber.join(fiber)
  })

for (const method of ["readFeed", "removals", "feed", "read"] as const) {
  it.scoped(`FI-85: a fault of our own in \`${method}\` of the log does not end the follower`, () =>
    withStore((root) =>
      logged((lines) =>
        Effect.gen(function* () {
          const log = yield* EventLog
          const id = session("one")
          yield* begin(id)
          // What is missing is made again from the session's log.
          if (method === "read") {
            yield* exportAll({ root, uid })
            rmSync(join(root, house, id, "events.jsonl"))
          }
          const seen = { faults: 0 }
          const faulty = new Proxy(log, {
            get: (target, name, receiver) => {
              const own: unknown = Reflect.get(target, name, receiver)
              if (name !== method || typeof own !== "function") return own
              return (...given: ReadonlyArray<unknown>) => {
                if (seen.faults++ < 3) throw new Error("the driver threw")
                return Reflect.apply(own, target, given)
              }
            }
          })
          const exporter = yield* Effect.provideService(exporterAt({ root, uid }), EventLog, faulty)
          const loop = yield* Effect.fork(exporter.follow)
          while (seen.faults < 4) yield* TestClock.adjust("1 second")
          const [last] = yield* log.append(id, [renamed("title 1")])
          yield* during(exporter.reached(last.position))
          assert.include(readFileSync(join(root, house, id, "meta.json"), "utf8"), "title 1")
          assert.isTrue(Option.isNone(yield* Fiber.poll(loop)))
          if (method !== "feed") {
            assert.isTrue(lines.some((line) => line.startsWith("ERROR the session files are not current since")))
            assert.isTrue(lines.some((line) => line.includes("the driver threw")))
          }
          assert.strictEqual((yield* stateOf(root))?.state, "following")
        })
      )
    )
  )
}

it.effect("FI-85: a fault of our own in the sweep does not end the follower, which says so and sweeps again", () =>
  Effect.gen(function* () {
    let sweeps = 0
    const said: Array<string> = []
    const { follow } = yield* Following.make({
      log: yield* Effect.provide(EventLog, memoryLog),
      position: Effect.succeed(0),
      first: Effect.succeed({ position: 0 }),
      batch: Effect.succeed({ position: 0, hasMore: false }),
      retry: Effect.void,
      sweep: Effect.suspend(() => (sweeps++ < 3 ? Effect.die(new Error("a fault")) : Effect.succeed(false))),
      say: ({ state }) => Effect.sync(() => void said.push(state))
    })
    const loop = yield* Effect.fork(follow)
    yield* TestClock.adjust("1 minute")
    assert.isAbove(sweeps, 4)
    yield* Fiber.interrupt(loop)
    assert.deepStrictEqual(said, ["following", "failing", "following", "stopped"])
  }).pipe(Effect.scoped)
)

it.effect(
  "FI-85, FI-91: a failure that lasts is said once, when it changes, and each ten minutes, not at each attempt",
  () =>
    logged((lines) =>
      Effect.gen(function* () {
        let [attempts, why] = [0, "no room"]
        const said: Array<string> = []
        const { follow } = yield* Following.make({
          // Closed: what keeps a log current would wake with the clock.
          log: yield* Effect.provide(EventLog, memoryLog),
          position: Effect.succeed(0),
          first: Effect.suspend(() => {
            attempts += 1
            return Effect.die(new Error(why))
          }),
          batch: Effect.succeed({ position: 0, hasMore: false }),
          retry: Effect.void,
          sweep: Effect.succeed(false),
          say: ({ error, state }) => Effect.sync(() => void said.push(`${state} ${error}`))
        })
        const loop = yield* Effect.fork(follow)
        yield* TestClock.adjust("3 minutes")
        why = "no disk"
        yield* TestClock.adjust("10 minutes")
        yield* Fiber.interrupt(loop)
        const errors = lines.filter((line) => line.startsWith("ERROR the session files"))
        assert.isAtLeast(attempts, 30)
        assert.strictEqual(errors.length, 3)
        assert.deepStrictEqual(said, ["following undefined", "failing no room", "failing no disk", "stopped undefined"])
      })
    ).pipe(Effect.scoped)
)

/** A file system of 2 MiB; nothing where this process may mount none. */
const smallDisk = Effect.gen(function* () {
  const path = join(yield* temporaryFolder, "disk")
  mkdirSync(path)
  return yield* Effect.acquireRelease(
    Effect.try(() => {
      execFileSync("mount", ["-t", "tmpfs", "-o", "size=2m", "tmpfs", path], { stdio: "ignore" })
      return path
    }),
    () => Effect.sync(() => execFileSync("umount", ["-l", path]))
  ).pipe(Effect.option)
})

/** A disk that can be filled: a real one, or, where none can be mounted, failing operations. */
const fullDisk = (otherwise: string) =>
  Effect.map(smallDisk, (disk) => {
    let full = false
    const at = Option.getOrElse(disk, () => otherwise)
    const filler = join(at, "filler")
    return {
      root: join(at, "ctx"),
      before: (operation: string, path: string) => {
        // What is there can be written over.
        if (full && operation === "write" && !path.endsWith("follower.json")) {
          throw Object.assign(new Error("no space"), { code: "ENOSPC" })
        }
      },
      fill: Effect.sync(() => {
        if (Option.isNone(disk)) return void (full = true)
        const { bavail, bsize } = statfsSync(at)
        for (let left = bavail; left > 0; left--) {
          writeFileSync(filler, Buffer.alloc(bsize), { flag: "a" })
        }
      }),
      empty: Effect.sync(() => {
        full = false
        rmSync(filler, { force: true })
      })
    }
  })

it.scoped("FI-85, FI-91: the follower gets over a full disk, and says meanwhile what is wrong and since when", () =>
  withStore((_, folder) =>
    logged((lines) =>
      Effect.gen(function* () {
        const log = yield* EventLog
        const { before, empty, fill, root } = yield* fullDisk(folder)
        const id = session("full")
        const [event] = yield* begin(id)
        const exporter = yield* exporterAt({ root, uid, before })
        const loop = yield* Effect.fork(exporter.follow)
        yield* during(exporter.reached(event.position))
        for (const round of [1, 2]) {
          yield* fill
          const events = yield* Effect.forEach(Array.from({ length: 40 }), (_, n) =>
            log.append(id, [renamed(`${round} ${n} ${"x".repeat(8_000)}`)])
          )
          const last = events.at(-1)?.[0].position ?? 0
          // It returns, although nothing can be written.
          yield* during(exporter.reached(last))
          const state = yield* stateOf(root)
          assert.strictEqual(state?.state, "failing")
          assert.isBelow(state?.position ?? last, last)
          assert.match(state?.error ?? "", /disk is full|no space/i)
          yield* TestClock.adjust("5 seconds")
          assert.isTrue(Option.isNone(yield* Fiber.poll(loop)))
          yield* empty
          while ((yield* stateOf(root))?.state !== "following") yield* TestClock.adjust("1 second")
          yield* during(exporter.reached(last))
          assert.notProperty(yield* stateOf(root), "error")
        }
        yield* Fiber.interrupt(loop)
        assert.strictEqual((yield* stateOf(root))?.state, "stopped")
        const fresh = join(folder, "fresh")
        yield* exportAll({ root: fresh, uid })
        assert.deepStrictEqual(tree(root), tree(fresh))
        assert.strictEqual(lines.filter((line) => line.includes("are written again, after")).length, 2)
      })
    )
  )
)

/** A follower over sessions that nobody touches, and what it finds. */
const watching = (root: string, count: number, before?: () => void) =>
  Effect.gen(function* () {
    const ids = Array.from({ length: count }, (_, n) => SessionID.make(`ses_${String(n).padStart(4, "0")}`))
    for (const id of ids) yield* begin(id)
    const exporter = yield* exporterAt({ root, uid, before })
    const findings = yield* exporter.findings
    yield* exporter.catchUp
    yield* Effect.forkScoped(exporter.follow)
    yield* during(exporter.reached(count))
    /** Time goes on, and what the follower does then has ended. */
    const tick = Effect.zipRight(TestClock.adjust("1 second"), exporter.exportSession(ids[0] ?? ""))
    return { findings, tick }
  })

it.scoped("FI-90: a house that is deleted while its sessions rest comes back with all of them, by itself", () =>
  withStore((root) =>
    Effect.gen(function* () {
      // More than are looked at in one go.
      const { findings, tick } = yield* watching(root, 150)
      const before = tree(root)
      rmSync(join(root, "home"), { recursive: true })
      const isBack = () =>
        existsSync(join(root, house, "index/list")) && existsSync(join(root, house, "ses_0149/state"))
      for (let n = 0; n < 40 && !isBack(); n++) yield* tick
      assert.deepStrictEqual(tree(root), before)
      assert.isTrue([...(yield* Queue.takeAll(findings))].some(({ kind }) => kind === "missing"))
    })
  )
)

it.scoped("FI-90: files and folders that are changed while nothing happens are put right and reported", () =>
  withStore((root) =>
    Effect.gen(function* () {
      const { findings, tick } = yield* watching(root, 2)
      const before = tree(root)
      const isFolder = (path: string) => before[path]?.startsWith("folder") === true
      const paths = Object.keys(before)
      const files = paths.filter((path) => !isFolder(path))
      const seen = Effect.map(Queue.takeAll(findings), (all) =>
        [...all].map(({ kind, path }) => `${kind} ${path}`).toSorted()
      )
      const restored = Effect.gen(function* () {
        for (let n = 0; n < 40; n++) {
          yield* tick
          if (JSON.stringify(tree(root, { asides: false })) === JSON.stringify(before)) break
        }
        assert.deepStrictEqual(tree(root, { asides: false }), before)
        return yield* seen
      })
      const all = (kind: string, of: ReadonlyArray<string>) => of.map((path) => `${kind} ${path}`).toSorted()
      for (const path of paths) chmodSync(join(root, path), isFolder(path) ? 0o777 : 0o666)
      assert.deepStrictEqual(yield* restored, all("mode", paths))
      for (const path of files) rmSync(join(root, path))
      assert.deepStrictEqual(yield* restored, all("missing", files))
      for (const path of files) writeFileSync(join(root, path), "theirs")
      assert.deepStrictEqual(yield* restored, all("changed", files))
      assert.isTrue(files.every((path) => existsSync(join(root, `${path}.aside.1`))))
    })
  )
)

it.scoped("FI-90: looking costs a bounded number of operations each ten seconds, and none in between", () =>
  withStore((root) =>
    Effect.gen(function* () {
      let operations = 0
      const { tick } = yield* watching(root, 200, () => void (operations += 1))
      const per: Array<number> = []
      for (let n = 0; n < 25; n++) {
        operations = 0
        yield* tick
        per.push(operations)
      }
      const idle = Math.min(...per)
      // 128 sessions of 10 files, and the folders on the way to them.
      assert.isAtMost(Math.max(...per) - idle, 128 * 80)
      assert.isAtLeast(per.filter((count) => count === idle).length, 15)
    })
  )
)
