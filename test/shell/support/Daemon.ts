/** A server process of a test: started, awaited until it is ready, and stopped with the scope. */
import { spawn } from "node:child_process"
import { createServer } from "node:net"
import { Deferred, Effect, Exit } from "effect"
import { waitingFor } from "../../support/Waiting.ts"

/** A free port of the loopback interface. */
export const freePort = Effect.async<number>((resume) => {
  const server = createServer()
  server.listen(0, "127.0.0.1", () => {
    const address = server.address()
    const port = address !== null && typeof address === "object" ? address.port : 0
    server.close(() => resume(Effect.succeed(port)))
  })
})

export interface DaemonOptions {
  readonly args: ReadonlyArray<string>
  /** What the server prints when it accepts connections. */
  readonly ready: RegExp
  readonly env?: Readonly<Record<string, string>>
}

/** Starts a server. Its end, at the end of the scope, is awaited. */
export const daemon = Effect.fnUntraced(function* (program: string, { args, env, ready }: DaemonOptions) {
  const started = yield* Deferred.make<void, Error>()
  const ended = yield* Deferred.make<void>()
  let text = ""
  const child = yield* Effect.acquireRelease(
    Effect.sync(() => spawn(program, args, { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, ...env } })),
    (child) =>
      Effect.zipRight(
        Effect.sync(() => child.kill("SIGTERM")),
        waitingFor(`the end of ${program}`)(Deferred.await(ended))
      )
  )
  const waiting = new Set<() => void>()
  const read = (chunk: Buffer) => {
    text = (text + String(chunk)).slice(-100_000)
    if (ready.test(text)) Deferred.unsafeDone(started, Exit.void)
    for (const look of waiting) look()
  }
  /** Waits until what the server printed matches. */
  const said = (pattern: RegExp) =>
    Effect.async<void>((resume) => {
      const look = () => {
        if (pattern.test(text)) resume(Effect.void)
      }
      waiting.add(look)
      look()
      return Effect.sync(() => waiting.delete(look))
    }).pipe(waitingFor(`${program} to print ${pattern.source}`))
  child.stdout.on("data", read)
  child.stderr.on("data", read)
  child.on("exit", () => {
    Deferred.unsafeDone(ended, Exit.void)
    Deferred.unsafeDone(started, Exit.fail(new Error(`${program} ended: ${text.slice(-2_000)}`)))
  })
  yield* waitingFor(`the start of ${program}`)(Deferred.await(started))
  return { pid: child.pid ?? 0, said }
})
