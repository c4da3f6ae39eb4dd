/** Reads the contents of stored files, one after another, through one git process. Spec: UN-20. */
import { once } from "node:events"
import type { Readable } from "node:stream"
import { Effect, type Scope } from "effect"
import { gitFailed, noGit, startGit } from "./Git.ts"
import type { SnapshotUnavailable } from "./SnapshotError.ts"

const args = ["cat-file", "--batch"]

/** Waits for this many bytes; fewer at the end of the stream. */
const exactly = async (stream: Readable, count: number): Promise<Buffer> => {
  if (count === 0) return Buffer.alloc(0)
  for (;;) {
    const found: unknown = stream.read(count)
    if (Buffer.isBuffer(found)) return found
    if (stream.readableEnded || stream.destroyed) return Buffer.alloc(0)
    const first = new AbortController()
    await Promise.race([once(stream, "readable", first), once(stream, "close", first)])
    first.abort()
  }
}

const lineOf = async (stream: Readable): Promise<string> => {
  for (let line = ""; ;) {
    const next = (await exactly(stream, 1)).toString("latin1")
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
    return (id: string) =>
      Effect.tryPromise({
        try: async () => {
          child.stdin.write(`${id}\n`)
          const [, type, size] = (await lineOf(child.stdout)).split(" ")
          if (type !== "blob") throw new Error(`${id} is ${type ?? "unreadable"}`)
          const content = await exactly(child.stdout, Number(size))
          if (content.length !== Number(size)) throw new Error(`${id} is incomplete`)
          await exactly(child.stdout, 1)
          return content
        },
        catch: (cause) => gitFailed(args, cause instanceof Error ? cause.message : String(cause))
      })
  })
