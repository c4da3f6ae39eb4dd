/**
 * A program that uses a database and then ends as it is told: `return`, `exit`, `throw`, `signal`, or `worker`, which starts
 * threads that use the database and terminates them while they do. Collections are forced all the time.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { once } from "node:events"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads"
import { Effect, ManagedRuntime } from "effect"
import * as Database from "@daybook/log/storage/Database"

setFlagsFromString("--expose-gc")
const collect: unknown = runInNewContext("gc")

/** Prepares, runs and drops more statements than a connection keeps. */
const use = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (let n = 0; n < 500; n++) yield* sql.unsafe(`SELECT ${n} FROM migration`)
  if (typeof collect === "function") collect()
})

const work = async (filename: string) => {
  const runtime = ManagedRuntime.make(Database.layer({ filename }))
  await runtime.runPromise(use)
  return runtime
}

/** Uses the database until the thread is terminated. */
const forever = async (filename: string) => {
  const runtime = await work(filename)
  parentPort?.postMessage("used", [])
  await runtime.runPromise(Effect.forever(Effect.zipRight(use, Effect.yieldNow())))
}

const threads = async (filename: string, count: number) => {
  for (let n = 0; n < count; n++) {
    const worker = new Worker(new URL(import.meta.url), { workerData: filename })
    await once(worker, "message")
    if ((await worker.terminate()) !== 1) throw new Error("a worker ended in another way")
  }
}

const end = async ([way, filename = "", count = "1"]: ReadonlyArray<string>) => {
  if (way === "worker") return threads(filename, Number(count))
  const runtime = await work(filename)
  if (way === "exit") process.exit(7)
  if (way === "throw") setImmediate(() => JSON.parse("not JSON"))
  if (way === "signal") process.kill(process.pid, "SIGTERM")
  if (way === "return") await runtime.dispose()
}

await (isMainThread ? end(process.argv.slice(2)) : forever(String(workerData)))
