/** Reads the contents of stored files, one after another, through one git process. Spec: UN-20. */
import type { Readable } from "node:stream"
import { Effect, type Scope } from "effect"
import { gitFailed, noGit, startGit } from "./Git.ts"
import type { SnapshotUnavailable } from "./SnapshotError.ts"

const args = ["cat-file", "--batch"]

type Take = (count: number) => Promise<Buffer>

/** Takes the next bytes of a stream: as many as asked for, fewer at its end. */
const takerOf = (stream: Readable): Take => {
  const parts: AsyncIterator<Buffer> = stream[Symbol.asyncIterator]()
  let rest: Buffer = Buffer.alloc(0)
  return async (count) => {
    const taken: Array<Buffer> = []
    for (let missing = count; missing > 0;) {
      if (rest.length === 0) {
        const next = await parts.next()
        if (next.done === true) break
        rest = next.value
      }
      const part = rest.subarray(0, missing)
      rest = rest.subarray(part.length)
      missing -= part.length
      taken.push(part)
    }
    return Buffer.concat(taken)
  }
}

const lineOf = async (take: Take): Promise<string> => {
  for (let line = ""; ;) {
    const next = (await take(1)).toString("latin1")
    if (next === "" || next === "\n") return line
    line += next
  }
}

/** A reader of contents by their ids, until the scope closes. It takes one id at a time. */
export const open = (
  store: string
): Effect.Effect<(id: string) => Effect.Effect<Buffer, SnapshotUnavailable>, SnapshotUnavailable, Scope.Scope> =>
  Effect.gen(function* () {
    const child = yield* Effect.acquireRelease(
      Effect.suspend(() => {
        const started = startGit(store, { cwd: store, args, env: { GIT_DIR: store } })
        return started === undefined ? noGit : Effect.succeed(started)
      }),
      (started) => Effect.sync(() => started.kill("SIGKILL"))
    )
    child.on("error", () => {})
    child.stderr.resume()
    const take = takerOf(child.stdout)
    return (id: string) =>
      Effect.tryPromise({
        try: async () => {
          child.stdin.write(`${id}\n`)
          const [, type, size] = (await lineOf(take)).split(" ")
          if (type !== "blob") throw new Error(`${id} is ${type ?? "unreadable"}`)
          const content = await take(Number(size))
          if (content.length !== Number(size)) throw new Error(`${id} is incomplete`)
          await take(1)
          return content
        },
        catch: (cause) => gitFailed(args, cause instanceof Error ? cause.message : String(cause))
      })
  })
