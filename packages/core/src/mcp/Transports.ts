/**
 * How a server is reached: a process of ours with its standard streams, or streamable HTTP. The protocol's packages are
 * loaded when a server is first connected, so that who has none configured does not pay for them. Leaves the protocol
 * to `Connection.ts`. Spec: MC-3..MC-5.
 */
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js"
import { Effect, Option, Record, type Scope } from "effect"
import { childEnvironment } from "../child/ChildEnvironment.ts"
import { bounded } from "../child/ControlGroup.ts"
import { Sandbox } from "../child/Sandbox.ts"
import { watch } from "../child/SandboxWatch.ts"
import { maxBodyBytes } from "../Limits.ts"
import { boundedFetch } from "./BoundedFetch.ts"
import { ServerFault } from "./Connection.ts"
import {
  inSentence,
  isStdio,
  reveal,
  type HttpServer,
  type McpServer,
  type Redactor,
  type StdioServer
} from "./McpServer.ts"

/** A way to a server that is not opened yet. It is closed with its scope. */
export interface Way {
  readonly transport: Transport
  /** What the server wrote last to its standard error, as the end of a sentence; empty when it wrote nothing. */
  readonly lastWords: () => string
}

/** Kept of what a server writes to its standard error. */
const stderrLimit = 4 * 1024

/** A session that is not ended within this time is left to the server. */
const farewellMillis = 1_000

/**
 * Waits for a promise, for at most so long; how it ended does not matter. A finalizer cannot be interrupted, so that
 * `Effect.timeout` would wait for the promise all the same, and a test's clock would never let it end.
 */
const within = (promise: Promise<unknown>, millis: number) =>
  new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, millis)
    const done = () => {
      clearTimeout(timer)
      resolve()
    }
    promise.then(done, done)
  })

/** The end of a stream's text. A secret's part at the beginning is not shown: more than that is kept. */
const makeTail = (redact: Redactor) => {
  let kept = ""
  return {
    add: (chunk: string) => {
      kept = (kept + chunk).slice(-(stderrLimit + redact.longest))
    },
    lastWords: () => {
      const words = inSentence(redact.last(kept, stderrLimit).trim().split("\n").slice(-3).join(" "), 300)
      return words === "" ? "" : `; its last words: ${words}`
    }
  }
}

const environmentOf = (server: StdioServer) => ({
  ...childEnvironment(process.env),
  ...Record.map(server.env ?? {}, reveal)
})

/** The server's sandbox, where one is asked for. Its folder is read-only unless it is named as writable. */
const confine = Effect.fnUntraced(function* (server: StdioServer) {
  const sandbox = yield* Sandbox
  const { cwd = "/tmp", sandbox: own = {} } = server
  const wanted = { cwd, readable: server.cwd === undefined ? [] : [cwd], writable: [], env: environmentOf(server), own }
  return yield* Effect.mapError(sandbox.confine(wanted), ({ message }) => new ServerFault({ details: message }))
})

const openStdio = Effect.fnUntraced(function* (server: StdioServer, redact: Redactor) {
  const { StdioClientTransport } = yield* Effect.promise(() => import("@modelcontextprotocol/sdk/client/stdio.js"))
  const confined = yield* confine(server)
  const bounds = Option.isSome(confined) ? yield* bounded(confined.value.limits) : []
  const [command = server.command, ...args] = [
    ...bounds,
    ...Option.match(confined, { onNone: () => [], onSome: ({ prefix }) => prefix }),
    server.command,
    ...(server.args ?? [])
  ]
  const cwd = Option.isSome(confined) ? "/" : server.cwd
  const transport = new StdioClientTransport({
    command,
    args,
    // The package adds `HOME`, `PATH` and four more by itself, which are among these.
    env: Option.match(confined, { onNone: () => environmentOf(server), onSome: ({ env }) => ({ ...env }) }),
    stderr: "pipe",
    maxBufferSize: maxBodyBytes.mcp,
    ...(cwd === undefined ? {} : { cwd })
  })
  const tail = makeTail(redact)
  if (Option.isSome(confined)) {
    yield* watch(() => transport.pid, confined.value.limits).pipe(
      Effect.map((bound) => {
        tail.add(`\nended by its sandbox: too much of ${bound}`)
        if (transport.pid !== null) process.kill(transport.pid, "SIGKILL")
      }),
      Effect.forkScoped
    )
  }
  // Decoded as it comes: a character that is cut between two chunks must not become two.
  const decoder = new TextDecoder()
  transport.stderr?.on("data", (chunk: Uint8Array) => tail.add(decoder.decode(chunk, { stream: true })))
  // The protocol closes a transport on its own when connecting fails, and does not wait: one closing for both.
  const close = transport.close.bind(transport)
  let closing: Promise<void> | undefined
  transport.close = () => (closing ??= close())
  yield* Effect.addFinalizer(() => Effect.promise(() => transport.close().catch(() => undefined)))
  return { transport, lastWords: tail.lastWords }
})

const openHttp = Effect.fnUntraced(function* (server: HttpServer) {
  const { StreamableHTTPClientTransport } = yield* Effect.promise(
    () => import("@modelcontextprotocol/sdk/client/streamableHttp.js")
  )
  const transport = new StreamableHTTPClientTransport(new URL(server.url), {
    fetch: boundedFetch,
    requestInit: { headers: Record.map(server.headers ?? {}, reveal) }
  })
  yield* Effect.addFinalizer(() =>
    Effect.promise(async () => {
      await within(transport.terminateSession(), farewellMillis)
      await transport.close().catch(() => undefined)
    })
  )
  // The package's class declares an optional field as one that may be undefined.
  return { transport: transport as Transport, lastWords: () => "" }
})

/** The way to a server, for as long as a scope. A process is asked to end when its scope closes, then killed. */
export const open = (server: McpServer, redact: Redactor): Effect.Effect<Way, ServerFault, Scope.Scope> =>
  isStdio(server) ? openStdio(server, redact) : openHttp(server)
