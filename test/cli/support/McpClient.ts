/** An MCP client of the protocol's SDK, with a real `daybook mcp` as its server. */
import { spawn } from "node:child_process"
import { createInterface } from "node:readline"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js"
import { CallToolResultSchema } from "@modelcontextprotocol/sdk/types.js"
import { Effect, Schema, type Scope } from "effect"
import { build } from "./Bundle.ts"
import type { Place } from "./Process.ts"

export interface McpClient {
  readonly client: Client
  readonly pid: number
  /** Faults of the transport, such as a line that is not a message. */
  readonly faults: ReadonlyArray<Error>
  /** The result of a tool. */
  readonly call: (
    name: string,
    args: Readonly<Record<string, unknown>>,
    options?: { readonly signal?: AbortSignal; readonly onMessage?: (message: string) => void }
  ) => Effect.Effect<Answer, Error>
  readonly close: Effect.Effect<void>
}

export interface Answer {
  readonly isError: boolean
  readonly text: string
  readonly value: Readonly<Record<string, unknown>>
}

/** Starts a server in the place; the scope's end stops it. */
export const connect = (
  here: Place,
  { env = {}, words = [] }: { readonly env?: Record<string, string>; readonly words?: ReadonlyArray<string> } = {}
): Effect.Effect<McpClient, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const transport = new StdioClientTransport({
        command: process.execPath,
        args: [build().bin, "mcp", ...words],
        cwd: here.cwd,
        env: { PATH: process.env["PATH"] ?? "", HOME: here.root, DAYBOOK_DB: here.database, ...env }
      })
      const client = new Client({ name: "test", version: "1" })
      const faults: Array<Error> = []
      // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the client has no listeners
      client.onerror = (error) => void faults.push(error)
      await client.connect(transport)
      // The SDK handles a notification a microtask after it was read, but a response at once. Where one read brings both, it
      // takes the progress of a call for that of an unknown one. Responses wait for the notifications before them.
      const { onmessage } = transport
      // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the transport has no listeners
      transport.onmessage = (message) =>
        "method" in message ? onmessage?.(message) : queueMicrotask(() => onmessage?.(message))
      const call: McpClient["call"] = (name, args, { onMessage, signal } = {}) =>
        Effect.tryPromise({
          try: () =>
            client.callTool({ name, arguments: { ...args } }, CallToolResultSchema, {
              ...(signal === undefined ? {} : { signal }),
              ...(onMessage === undefined ? {} : { onprogress: ({ message = "" }) => onMessage(message) })
            }),
          catch: (cause) => (cause instanceof Error ? cause : new Error(String(cause)))
        }).pipe(
          Effect.map((result) => {
            const { content, isError = false, structuredContent = {} } = CallToolResultSchema.parse(result)
            const [first] = content
            return { isError, text: first?.type === "text" ? first.text : "", value: structuredContent }
          })
        )
      return { client, pid: transport.pid ?? 0, faults, call, close: Effect.promise(() => client.close()) }
    }),
    ({ close }) => close
  )

const RawAnswer = Schema.parseJson(
  Schema.Struct({
    id: Schema.Int,
    result: Schema.Struct({ structuredContent: Schema.Record({ key: Schema.String, value: Schema.Unknown }) })
  })
)

/** A client that writes lines and reads lines, one request at a time, and sends no signal before the scope's end. */
export const rawClient = (here: Place) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() =>
        spawn(process.execPath, [build().bin, "mcp"], {
          cwd: here.cwd,
          env: { PATH: process.env["PATH"] ?? "", HOME: here.root, DAYBOOK_DB: here.database },
          stdio: ["pipe", "pipe", "pipe"]
        })
      ),
      (child) => Effect.sync(() => void child.kill("SIGKILL"))
    ),
    (child) => {
      const lines: Array<string> = []
      let errors = ""
      child.stderr.setEncoding("utf8").on("data", (text: string) => (errors += text))
      // The server may end before it has read everything.
      child.stdin.on("error", () => undefined)
      const reader = createInterface({ input: child.stdout }).on("line", (line) => void lines.push(line))
      const ended = new Promise<{ readonly code: number | null; readonly signal: string | null }>((resolve) =>
        child.once("close", (code, signal) => resolve({ code, signal }))
      )
      return {
        lines: () => lines,
        errors: () => errors,
        send: (text: string) => void child.stdin.write(text),
        ended: Effect.promise(() => ended),
        request: (id: number, name: string, args: Readonly<Record<string, unknown>>) =>
          Effect.async<string>((resume) => {
            reader.once("line", (line) => resume(Effect.succeed(line)))
            const params = { name, arguments: args }
            child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, method: "tools/call", params })}\n`)
          }).pipe(Effect.flatMap(Schema.decode(RawAnswer))),
        /** Ends standard input, and waits for the end of the process. */
        end: Effect.suspend(() => {
          child.stdin.end()
          return Effect.promise(() => ended)
        })
      }
    }
  )
