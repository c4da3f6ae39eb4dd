/** Tells from outside when the processes of a command are gone. */
import { execFileSync } from "node:child_process"
import { createReadStream } from "node:fs"
import { join } from "node:path"
import { Deferred, Effect } from "effect"

/**
 * A named pipe that processes of a command hold open for writing: `first` is what they write, and `ended` comes when
 * the last of them is gone, whoever its parent is by then.
 */
export const makeLifeline = Effect.fnUntraced(function* (folder: string) {
  const path = join(folder, "life")
  execFileSync("mkfifo", [path])
  const [first, ended] = [yield* Deferred.make<string>(), yield* Deferred.make<void>()]
  createReadStream(path)
    .on("data", (data) => Deferred.unsafeDone(first, Effect.succeed(String(data).trim())))
    .on("end", () => Deferred.unsafeDone(ended, Effect.void))
  return { first: Deferred.await(first), ended: Deferred.await(ended) }
})
