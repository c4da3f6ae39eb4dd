/** Runs real MCP servers as processes, and a Location whose registry has their tools. */
import { fork } from "node:child_process"
import { createRequire } from "node:module"
import { createServer } from "node:net"
import { fileURLToPath } from "node:url"
import { Context, Deferred, Effect, Layer, type Scope, Stream } from "effect"
import { HostTools } from "../../../packages/core/src/tool/HostTools.ts"
import * as Mcp from "../../../packages/mcp/src/Mcp.ts"
import { program as bundled } from "../../support/Program.ts"
import { callBy, makeWorkbench, type Options, textOf } from "../../tools/Workbench.ts"

const { resolve } = createRequire(import.meta.url)
const node = (...args: ReadonlyArray<string>) => ({ command: process.execPath, args })

/** The server of `server.mjs`, bundled: tests start it often. */
export const program = await Effect.runPromise(bundled(fileURLToPath(new URL("server.mjs", import.meta.url))))

/** The protocol's reference server over standard streams. */
export const everything = node(resolve("@modelcontextprotocol/server-everything/dist/index.js"), "stdio")
export const filesystem = (folder: string) =>
  node(resolve("@modelcontextprotocol/server-filesystem/dist/index.js"), folder)
export const obedient = node(program, "stdio")
/** Our server with a fault. */
export const wrong = (how: "endless" | "noisy") => node(program, "stdio", how)
/** Reads all input and never answers. */
export const silent = node("-e", "process.stdin.resume()")

interface HttpProcess {
  readonly url: string
  /** Kills the process and waits for its end. */
  readonly kill: Effect.Effect<void>
}

const startHttp = (
  file: string,
  args: ReadonlyArray<string>,
  port: number,
  listening: (child: ReturnType<typeof fork>, done: (port: number) => void) => void
) =>
  Effect.acquireRelease(
    Effect.gen(function* () {
      const ended = yield* Deferred.make<void>()
      const child = fork(file, [...args], {
        env: { ...process.env, ...(port === 0 ? {} : { PORT: String(port) }) },
        execArgv: [],
        silent: true
      })
      child.on("exit", () => Deferred.unsafeDone(ended, Effect.void))
      const found = yield* Effect.async<number>((resume) => listening(child, (it) => resume(Effect.succeed(it))))
      const kill = Effect.zipRight(
        Effect.sync(() => child.kill("SIGKILL")),
        Deferred.await(ended)
      )
      /** Makes the server forget its sessions and waits until it has done so. */
      const forget = Effect.async<void>((resume) => {
        child.once("message", () => resume(Effect.void))
        child.send("forget")
      })
      return { url: `http://127.0.0.1:${found}/mcp`, port: found, kill, forget }
    }),
    ({ kill }) => kill
  )

/** A port without a listener. */
export const freePort = Effect.async<number>((resume) => {
  const server = createServer()
  server.listen(0, "127.0.0.1", () => {
    const address = server.address()
    const port = address !== null && typeof address === "object" ? address.port : 0
    server.close(() => resume(Effect.succeed(port)))
  })
})

/** Our own server over HTTP, on a free port unless one is given. */
export const obedientHttp = (port = 0, how: "streams" | "plain" | "rude" = "streams") =>
  startHttp(program, ["http", how], port, (child, done) => child.once("message", (found) => done(Number(found))))

/** The reference server over HTTP. It reads its port from the environment and reports on stderr when it listens. */
export const everythingHttp = (port: number): Effect.Effect<HttpProcess, never, Scope.Scope> =>
  startHttp(everything.args[0] ?? "", ["streamableHttp"], port, (child, done) =>
    child.stderr?.on("data", (chunk: Buffer) => {
      if (chunk.toString().includes("listening")) done(port)
    })
  )

/** Our server, or with this mode one that never answers: the configuration is the same. */
export const moody = (mode: "well" | "silent") => ({
  command: process.execPath,
  args: [
    "-e",
    'if (process.env.MODE === "silent") process.stdin.resume(); else import(process.env.PROGRAM)',
    "program",
    "stdio"
  ],
  env: { MODE: mode, PROGRAM: program }
})

/** A Location with the tools of these servers. `tools`: where their lists are kept. */
export const makeMcp = Effect.fnUntraced(function* (servers: Mcp.McpServers, options: Options = {}, tools?: string) {
  const bench = yield* makeWorkbench(options)
  const host = Layer.succeed(HostTools, Context.get(bench.context, HostTools))
  const mcp = Context.get(yield* Layer.build(Layer.provide(Mcp.layer(servers, { tools }), host)), Mcp.Mcp)
  const offered = Effect.map(bench.registry.materialize(bench.agent), ({ definitions }) =>
    definitions.map(({ name }) => name)
  )
  /** Waits until a server's status matches. */
  const until = (name: string, matches: (status: Mcp.McpStatus) => boolean) =>
    mcp.changes.pipe(
      Stream.flattenIterables,
      Stream.filter((status) => status.name === name && matches(status)),
      Stream.runHead,
      Effect.flatMap(Effect.orDie<Mcp.McpStatus, unknown, never>)
    )
  const said = (name: string, input: unknown = {}) => Effect.map(bench.succeed(name, input), textOf)
  const call = () => callBy(bench.agent, bench.folder)
  /** Waits as a request does. */
  const { ready } = Context.get(bench.context, HostTools)
  return { ...bench, bench, call, mcp, offered, ready, until, said }
})
