/**
 * A separate process that imports a log and kills itself:
 *   importChild DATABASE LOG AT
 * AT counts statements of the database; the process kills itself before the one with that number, and ends with 0 if there
 * are fewer.
 */
import { NodeFileSystem } from "@effect/platform-node"
import Sqlite from "better-sqlite3"
import { Effect, Layer } from "effect"
import { importLog } from "../../packages/formats/src/import/Import.ts"
import * as LogSource from "../../packages/formats/src/import/LogSource.ts"
import * as Store from "../../packages/log/src/Store.ts"

const [, , filename = "", log = "", at = ""] = process.argv
let left = Number(at)

type Method = (this: unknown, ...given: ReadonlyArray<unknown>) => unknown

/** Counts the calls of a method of all statements. */
const count = (statement: object, name: string): void => {
  const method: Method = Reflect.get(statement, name)
  Reflect.set(statement, name, function (this: unknown, ...given: ReadonlyArray<unknown>) {
    if (left-- <= 0) process.kill(process.pid, "SIGKILL")
    return Reflect.apply(method, this, given)
  })
}

const memory = new Sqlite(":memory:")
const statement: object = Object.getPrototypeOf(memory.prepare("SELECT 1"))
memory.close()
for (const name of ["run", "all", "get"]) count(statement, name)

await importLog((ends) => LogSource.open(log, "auto", ends), { directory: "/tmp" }).pipe(
  Effect.provide(Layer.merge(Store.layer({ filename }), NodeFileSystem.layer)),
  Effect.runPromise
)
