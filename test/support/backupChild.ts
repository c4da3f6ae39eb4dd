/**
 * A separate process that copies or restores a database and kills itself:
 *   backupChild backup|restore DATABASE FILE AT
 * AT counts operations on files and steps of the copy; the process kills itself before or after the one with that number,
 * and ends with 0 if there are fewer.
 */
import fs from "node:fs/promises"
import { syncBuiltinESMExports } from "node:module"
import { Effect } from "effect"
import * as Backup from "../../packages/log/src/maintenance/Backup.ts"

const [, , operation, database = "", file = "", at = ""] = process.argv
/** Even numbers kill before an operation, odd ones after it. */
const [number, isAfter] = [Math.floor(Number(at) / 2), Number(at) % 2 === 1]
let count = 0

const killIf = (condition: boolean): void => {
  if (condition) process.kill(process.pid, "SIGKILL")
}

const counting =
  <Args extends ReadonlyArray<unknown>, A>(call: (...args: Args) => Promise<A>) =>
  async (...args: Args): Promise<A> => {
    const mine = count++
    killIf(mine === number && !isAfter)
    const result = await call(...args)
    killIf(mine === number && isAfter)
    return result
  }

fs.open = counting(fs.open)
fs.link = counting(fs.link)
fs.rename = counting(fs.rename)
fs.rm = counting(fs.rm)
syncBuiltinESMExports()

const options = { database, file, force: true, onProgress: () => killIf(count++ === number) }
await Effect.runPromise(operation === "backup" ? Backup.backup(options) : Effect.asVoid(Backup.restore(options)))
process.exit(0)
