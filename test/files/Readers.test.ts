/** Readers beside the exporter: a thread that reads every control file over and over, until it is told to end. */
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { Worker } from "node:worker_threads"
import { assert, it } from "@effect/vitest"
import { Effect, Queue } from "effect"
import * as SafeFiles from "../../packages/files/src/disk/SafeFiles.ts"
import { MessageID, SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { draft } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { temporaryFolder } from "../support/Database.ts"
import { begin, renamed } from "../support/Logs.ts"
import { exporterAt, storeAt } from "./support/Exports.ts"

/**
 * Reads each file as fast as it can. A value is whole when it ends in its only newline and begins with its length; a real
 * control file, when it ends in a newline and, of JSON, parses.
 */
const reading = `
  const { parentPort, workerData } = require("node:worker_threads")
  const { readFileSync } = require("node:fs")
  let ended = false
  let reads = 0
  const bad = []
  parentPort.on("message", () => { ended = true })
  const look = () => {
    for (let n = 0; n < 200; n++) for (const file of workerData) {
      const text = readFileSync(file, "utf8")
      reads++
      const numbered = /^(\\d+):/.exec(text)
      const whole = text.endsWith("\\n") && (numbered === null || Number(numbered[1]) === text.length)
      let parsed = true
      if (file.endsWith(".json")) try { JSON.parse(text) } catch { parsed = false }
      if (!whole || !parsed) bad.push(file + " " + JSON.stringify(text.slice(0, 80)))
    }
    if (ended) parentPort.postMessage({ reads, bad: bad.slice(0, 5) })
    else setImmediate(look)
  }
  parentPort.postMessage("reading")
  look()
`

/** Reads the files in a thread while the effect runs, and gives what it saw. */
const readWhile = <E, R>(files: ReadonlyArray<string>, use: Effect.Effect<void, E, R>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const said = yield* Queue.unbounded<unknown>()
      const worker = yield* Effect.acquireRelease(
        Effect.sync(() => new Worker(reading, { eval: true, workerData: files })),
        (worker) => Effect.promise(() => worker.terminate())
      )
      worker.on("message", (message: unknown) => Queue.unsafeOffer(said, message))
      worker.on("error", (error) => Queue.unsafeOffer(said, { reads: 0, bad: [error.message] }))
      assert.strictEqual(yield* Queue.take(said), "reading")
      yield* use
      worker.postMessage("end", [])
      return yield* Queue.take(said)
    })
  )

const assertWhole = (seen: unknown) => {
  assert.deepInclude(seen, { bad: [] })
  // Typed by the thread above.
  assert.isAbove((seen as { readonly reads: number }).reads, 500)
}

it.scopedLive(
  "FL-3: a reader in a tight loop during thousands of updates never sees an empty or partial value",
  () =>
    Effect.gen(function* () {
      const root = yield* temporaryFolder
      const files = SafeFiles.make({ root })
      mkdirSync(join(root, "s"))
      const names = ["s/state", "s/updated_at", "s/latest.md", "s/current", "s/list"]
      const valueOf = (n: number) => {
        const rest = "x".repeat((n * 7919) % 40_000)
        const prefix = 7
        return `${String(prefix + rest.length + 1).padStart(6, "0")}:${rest}\n`
      }
      yield* Effect.forEach(names, (name) => files.replace(name, valueOf(0), 0o600))
      const updates = Effect.forEach(
        Array.from({ length: 2_000 }),
        (_, n) => files.replace(names[n % names.length] ?? "", valueOf(n), 0o600),
        { discard: true }
      )
      assertWhole(
        yield* readWhile(
          names.map((name) => join(root, name)),
          updates
        )
      )
    }),
  120_000
)

it.scopedLive("FL-3: while sessions go on, every control file and every index is whole at every moment", () =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    const root = join(folder, "ctx")
    yield* Effect.gen(function* () {
      const log = yield* EventLog
      const [one, other] = [SessionID.make("ses_one"), SessionID.make("ses_other")]
      yield* begin(one)
      yield* begin(other)
      const exporter = yield* exporterAt({ root, uid: 7 })
      yield* exporter.catchUp
      const house = join(root, "home/7/agent/build/session")
      const files = [
        ...["state", "cwd", "created_at", "updated_at", "meta.json"].map((name) => join(house, one, name)),
        ...["list", "current"].map((name) => join(house, "index", name))
      ]
      const goOn = Effect.forEach(
        Array.from({ length: 40 }),
        (_, n) =>
          Effect.gen(function* () {
            const messageID = MessageID.make(`msg_${n}`)
            const prompt = { text: "x".repeat((n * 7919) % 20_000) }
            yield* log.append(n % 2 === 0 ? one : other, [
              renamed(prompt.text),
              draft("session.next.prompt.admitted", { messageID, prompt, delivery: "queue" })
            ])
            yield* exporter.reached(Number.MAX_SAFE_INTEGER)
          }),
        { discard: true }
      )
      assertWhole(yield* readWhile(files, goOn))
    }).pipe(Effect.provide(storeAt(join(folder, "store.db"))))
  })
)
