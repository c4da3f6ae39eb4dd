/**
 * Serves live shells to an MCP client over standard input and output. Uses the low-level server of the protocol's SDK: it
 * hands a handler the progress token and the signal of a cancellation. Spec: SL-120..SL-128, SL-585 in
 * specs/shell.md.
 *
 *   request -> decode -> Shells -> { result | result with isError | protocol error }
 */
import type { Readable, Writable } from "node:stream"
import { Server } from "@modelcontextprotocol/sdk/server/index.js"
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js"
import type { RequestHandlerExtra } from "@modelcontextprotocol/sdk/shared/protocol.js"
import {
  CallToolRequestSchema,
  type CallToolResult,
  ErrorCode,
  ListToolsRequestSchema,
  type LoggingLevel,
  LoggingLevelSchema,
  McpError,
  type ServerNotification,
  type ServerRequest,
  SetLevelRequestSchema
} from "@modelcontextprotocol/sdk/types.js"
import { Cause, Deferred, Effect, Exit, type Fiber, FiberSet, Queue, Schema, type Scope, Struct } from "effect"
import { endOf } from "@daybook/log/support/Text"
import type * as Shells from "../Shells.ts"
import type { ExecResult } from "../domain/ExecResult.ts"
import type { OutputStream } from "../output/OutputStore.ts"
import { type Answer, type ToolError, tools } from "./Tools.ts"

// Reports what a running command prints, or that it still runs: a client may cancel a call that says nothing for a
// minute.

/** Characters of a report. */
const longestReport = 2_000
const reportEvery = "1 second"
const quiet = 15_000

export interface Report {
  /** Grows with each report: the characters that the command has printed so far, and one for each report without output. */
  readonly progress: number
  /** The last characters, without the beginning of a surrogate pair; or that there are none. */
  readonly message: string
}

/** Takes the output of a command; a fiber of the scope sends reports. */
export const makeProgress = Effect.fnUntraced(function* (
  send: (report: Report) => Effect.Effect<void>
): Effect.fn.Return<(stream: OutputStream, text: string) => void, never, Scope.Scope> {
  const clock = yield* Effect.clock
  const bell = yield* Queue.sliding<void>(1)
  let characters = 0
  let latest = ""
  let beats = 0
  let printedAt = clock.unsafeCurrentTimeMillis()
  yield* Queue.take(bell).pipe(
    Effect.zipRight(Effect.suspend(() => send({ progress: characters + beats, message: latest }))),
    Effect.zipRight(Effect.sleep(reportEvery)),
    Effect.forever,
    Effect.forkScoped
  )
  /** Sleeps until nothing has been printed for `quiet`, or for another `quiet`. */
  const watch = (wait: number): Effect.Effect<never> =>
    Effect.flatMap(Effect.sleep(wait), () => {
      const silent = clock.unsafeCurrentTimeMillis() - printedAt
      if (silent < quiet) return watch(quiet - silent)
      beats += 1
      const message = `no output for ${Math.floor(silent / 1_000)} seconds`
      return Effect.zipRight(send({ progress: characters + beats, message }), watch(quiet))
    })
  yield* Effect.forkScoped(watch(quiet))
  return (_, text) => {
    if (text === "") return
    characters += text.length
    latest = endOf(latest + text, longestReport)
    printedAt = clock.unsafeCurrentTimeMillis()
    bell.unsafeOffer(undefined)
  }
})

export interface Options {
  readonly version: string
  /** The streams of the process by default. */
  readonly input?: Readable
  readonly output?: Writable
}

/** The client sent a message that is too long to be read: the server ends, because it cannot tell where the next one begins. */
export class MessageTooLong extends Schema.TaggedError<MessageTooLong>("@daybook/shell/MessageTooLong")(
  "MessageTooLong",
  { mebibytes: Schema.Int }
) {
  override get message() {
    return `the client sent a message of more than ${this.mebibytes} MiB, so that the server and its shells end: send less at once, or write a file first`
  }
}

/** Longest message of a client. */
const mebibytes = 10

/** Calls that run or wait at the same time. */
const mostCalls = 256

type Extra = RequestHandlerExtra<ServerRequest, ServerNotification>

const instructions =
  "Live shells: session_create opens one, session_exec runs commands in it one after another, and its state persists. " +
  "Call session_destroy when it is no longer needed."

const answered = ({ structured, text }: Answer): CallToolResult => ({
  content: [{ type: "text", text: JSON.stringify(text) }],
  structuredContent: structured
})

const failed = (code: string, message: string): CallToolResult => ({
  isError: true,
  content: [{ type: "text", text: message }],
  structuredContent: { error: { code, message } }
})

/** An unknown id is a fault of the request; every other failure is a result that the model reads (SH-2). */
const refused = (error: ToolError): Effect.Effect<CallToolResult, McpError> =>
  error._tag === "ShellNotFound"
    ? Effect.fail(new McpError(ErrorCode.InvalidParams, error.message))
    : Effect.succeed(failed(error._tag, error.message))

/** Sends a notification. A client that is gone misses it. */
const sending = (send: () => Promise<void>): Effect.Effect<void> => Effect.ignore(Effect.tryPromise(send))

/** Sends a log message about each command, if the client asked for messages of that level. */
const makeLog = (server: Server) => {
  let least: LoggingLevel | undefined
  server.setRequestHandler(SetLevelRequestSchema, ({ params }) => {
    least = params.level
    return {}
  })
  const order = LoggingLevelSchema.options
  return (id: string, { duration_ms, exit_code, timed_out }: ExecResult): Effect.Effect<void> => {
    const level = exit_code === 0 ? "info" : "warning"
    if (least === undefined || order.indexOf(level) < order.indexOf(least)) return Effect.void
    const data = { session_id: id, exit_code, duration_ms, ...(timed_out === true ? { timed_out } : {}) }
    return sending(() => server.sendLoggingMessage({ level, logger: "session_exec", data }))
  }
}

/** Sends the output of a command as progress, if the client gave a token. */
const progressOf = ({ _meta, sendNotification }: Extra) => {
  const progressToken = _meta?.progressToken
  if (progressToken === undefined) return Effect.succeed(undefined)
  return makeProgress((report) =>
    sending(() => sendNotification({ method: "notifications/progress", params: { progressToken, ...report } }))
  )
}

/** The promise of a fiber, which the signal of its request interrupts. */
const settled = <A, E>(fiber: Fiber.RuntimeFiber<A, E>, signal: AbortSignal): Promise<A> =>
  new Promise((resolve, reject) => {
    const interrupt = () => fiber.unsafeInterruptAsFork(fiber.id())
    signal.addEventListener("abort", interrupt, { once: true })
    if (signal.aborted) interrupt()
    fiber.addObserver((exit) => {
      signal.removeEventListener("abort", interrupt)
      Exit.match(exit, { onSuccess: resolve, onFailure: (cause) => reject(Cause.squash(cause)) })
    })
  })

const makeServer = Effect.fnUntraced(function* ({ version }: Options) {
  const server = new Server(
    { name: "daybook", title: "Daybook live shells", version },
    { capabilities: { tools: {}, logging: {} }, instructions }
  )
  const onExecuted = makeLog(server)
  const calls = yield* FiberSet.make<CallToolResult, McpError>()
  const start = yield* FiberSet.runtime(calls)<Shells.Shells>()
  const listed = tools.map((tool) => Struct.omit(tool, "call"))
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: listed }))
  server.setRequestHandler(CallToolRequestSchema, ({ params }, extra) => {
    const tool = tools.find(({ name }) => name === params.name)
    if (tool === undefined) throw new McpError(ErrorCode.InvalidParams, "there is no such tool")
    if (Effect.runSync(FiberSet.size(calls)) >= mostCalls) {
      return failed("TooManyCalls", `${mostCalls} calls run or wait, which is the limit: wait for one`)
    }
    const call = Effect.scoped(
      Effect.gen(function* () {
        const onText = yield* progressOf(extra)
        return yield* tool.call(params.arguments ?? {}, { onText, onExecuted })
      })
    )
    return settled(start(Effect.catchAll(Effect.map(call, answered), refused)), extra.signal)
  })
  return server
})

/**
 * Serves until the client closes standard input, or sends a message that is too long. The calls that run then are interrupted; the end of the layer of `Shells`
 * closes the shells.
 */
export const serve = Effect.fn("ShellMcp.serve")(function* (
  options: Options
): Effect.fn.Return<void, MessageTooLong, Shells.Shells | Scope.Scope> {
  const { input = process.stdin, output = process.stdout } = options
  const server = yield* makeServer(options)
  const ended = yield* Deferred.make<void, MessageTooLong>()
  const end = () => Deferred.unsafeDone(ended, Effect.void)
  // The transport itself closes for this reason alone.
  const giveUp = () => Deferred.unsafeDone(ended, new MessageTooLong({ mebibytes }))
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the server has no listeners
  server.onclose = giveUp
  input.once("end", end).once("close", end)
  yield* Effect.acquireRelease(
    Effect.promise(() =>
      server.connect(new StdioServerTransport(input, output, { maxBufferSize: mebibytes * 1024 * 1024 }))
    ),
    () => Effect.promise(() => server.close())
  )
  yield* Deferred.await(ended)
}, Effect.scoped)
