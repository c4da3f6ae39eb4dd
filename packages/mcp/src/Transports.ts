/**
 * Opens the transport to a server: a child process with its standard streams, or streamable HTTP. Loads the protocol's
 * packages at the first connection, so that hosts without servers do not pay for them. `Connection.ts` owns the
 * protocol. Spec: MC-3..MC-5 in specs/tools.md, LM-1, LM-10 in specs/security.md.
 */
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js"
import { Effect, Option, Record, type Scope } from "effect"
import { childEnvironment } from "@daybook/core/child/ChildEnvironment"
import { Sandbox } from "@daybook/core/child/Sandbox"
import { bounded, watch } from "@daybook/core/child/SandboxWatch"
import { boundedBody } from "@daybook/core/http/BoundedBody"
import { safeFetch } from "@daybook/core/http/SameOrigin"
import { maxBodyBytes, maxEventBytes } from "@daybook/core/support/Limits"
import {
  type HttpServer,
  inSentence,
  isStdio,
  type McpServer,
  type Redactor,
  reveal,
  ServerFault,
  type StdioServer
} from "./McpServer.ts"

// Fetches from an untrusted MCP server: within its origin, with bounded messages.

/** An event stream may stay open forever, so only its events are bounded. */
const limits = { body: maxBodyBytes.mcp, event: maxEventBytes.mcp }

export const boundedFetch = async (url: string | URL, init?: RequestInit): Promise<Response> =>
  boundedBody(await safeFetch(url, init), limits)

/** A transport to a server, not yet opened. It closes with its scope. */
export interface ServerTransport {
  readonly transport: Transport
  /** The server's last lines on standard error, as the end of a sentence; empty if it wrote nothing. */
  readonly lastWords: () => string
  /** Notes that the server answered: a process that never did is asked to end at once. */
  readonly answered: () => void
  /** Whether the server gave the connection a session. */
  readonly hasSession: () => boolean
}

/** How much of a server's standard error is kept. */
const stderrLimit = 4 * 1024

/** A session that does not end within this time is abandoned. */
const farewellMillis = 1_000

/**
 * Waits for a promise to settle, at most `millis`. `Effect.timeout` is not enough: a finalizer cannot be interrupted, so
 * it would wait for the promise anyway, and a test clock would never end it.
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

/** Keeps the end of a stream's text, long enough that a secret that is cut at the beginning is not shown. */
const makeTail = (redact: Redactor) => {
  let kept = ""
  return {
    add: (chunk: string) => {
      kept = (kept + chunk).slice(-(stderrLimit + redact.longest))
    },
    lastWords: () => {
      const words = inSentence(redact.last(kept, stderrLimit).trim().split("\n").slice(-3).join(" "), 300)
      return words === "" ? "" : `; its last output: ${words}`
    }
  }
}

const environmentOf = (server: StdioServer) => ({
  ...childEnvironment(process.env),
  ...Record.map(server.env ?? {}, reveal)
})

/** The server's sandbox, if one is configured. Its folder is read-only unless `writable` names it. */
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
    ...Option.match(confined, { onNone: () => [], onSome: ({ launch }) => launch.prefix }),
    server.command,
    ...(server.args ?? [])
  ]
  const cwd = Option.isSome(confined) ? "/" : server.cwd
  const transport = new StdioClientTransport({
    command,
    args,
    // The package adds `HOME`, `PATH` and four others, all of which are included here.
    env: Option.match(confined, { onNone: () => environmentOf(server), onSome: ({ env }) => ({ ...env }) }),
    stderr: "pipe",
    maxBufferSize: maxBodyBytes.mcp,
    ...(cwd === undefined ? {} : { cwd })
  })
  const tail = makeTail(redact)
  if (Option.isSome(confined)) {
    const { admit } = confined.value.launch
    const start = transport.start.bind(transport)
    transport.start = async () => {
      await start()
      if (transport.pid !== null) await Effect.runPromise(admit(transport.pid))
    }
    yield* watch(() => transport.pid, confined.value.limits).pipe(
      Effect.map((bound) => {
        tail.add(`\nended by its sandbox: too much of ${bound}`)
        if (transport.pid !== null) process.kill(transport.pid, "SIGKILL")
      }),
      Effect.forkScoped
    )
  }
  // Decodes incrementally: a character may be split between two chunks.
  const decoder = new TextDecoder()
  transport.stderr?.on("data", (chunk: Uint8Array) => tail.add(decoder.decode(chunk, { stream: true })))
  // The protocol closes the transport when connecting fails, and does not wait; both calls share one close.
  const close = transport.close.bind(transport)
  let closing: Promise<void> | undefined
  let isSilent = true
  transport.close = () => {
    if (isSilent && closing === undefined && transport.pid !== null) process.kill(transport.pid, "SIGTERM")
    return (closing ??= close())
  }
  yield* Effect.addFinalizer(() => Effect.promise(() => transport.close().catch(() => undefined)))
  const answered = () => void (isSilent = false)
  return { transport, lastWords: tail.lastWords, answered, hasSession: () => false }
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
  const hasSession = () => transport.sessionId !== undefined
  // The package's class declares an optional field as possibly undefined.
  return { transport: transport as Transport, lastWords: () => "", answered: () => undefined, hasSession }
})

/** Opens the transport to a server until the scope closes; then its process is asked to end, and killed. */
export const open = (server: McpServer, redact: Redactor): Effect.Effect<ServerTransport, ServerFault, Scope.Scope> =>
  isStdio(server) ? openStdio(server, redact) : openHttp(server)
