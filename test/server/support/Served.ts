/** Serves a runtime on a real socket, with clients that exchange lines. */
import { connect as connectTo, type Socket } from "node:net"
import { join } from "node:path"
import { Chunk, Context, Deferred, Effect, Exit, Layer, Queue, Scope } from "effect"
import { serve, type ServeOptions } from "@daybook/server"
import { Sessions } from "../../../packages/core/src/session/Sessions.ts"
import * as Daybook from "../../../packages/embedded/src/Daybook.ts"
import { Exporter, type ExporterOptions } from "../../../packages/files/src/Exporter.ts"
import type { SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import { EventLog } from "../../../packages/log/src/log/EventLog.ts"
import { temporaryFolder } from "../../support/Harness.ts"
import * as ScriptedModel from "../../support/ScriptedModel.ts"
import { waitingFor } from "../../support/Waiting.ts"

/** The user whose sessions are served. */
export const uid = 1000

export interface Options {
  /** The layout's root, which also contains the database. */
  readonly root: string
  readonly runtime?: Partial<Daybook.Options>
  readonly model?: Parameters<typeof ScriptedModel.layer>[0]
  readonly serve?: Partial<ServeOptions>
  readonly files?: Partial<ExporterOptions>
  /** Replaces the wait for the files. */
  readonly reached?: (position: number) => Effect.Effect<void>
}

/** The runtime on the root's database with its files and sockets, until the scope closes. */
export const open = ({ files, model: info, reached, root, runtime, serve: options }: Options) =>
  Effect.gen(function* () {
    const model = yield* Layer.build(Layer.fresh(ScriptedModel.layer(info)))
    const resolver = Layer.succeedContext(model)
    const daybook = (filename: string) => Layer.provide(Layer.fresh(Daybook.layer({ filename, ...runtime })), resolver)
    const core = yield* Layer.build(daybook(join(root, "daybook.sqlite")))
    const shared = options?.shared
    const exporter = yield* Layer.build(
      Layer.provide(
        Exporter.layer({ root, uid, ...(shared === undefined ? {} : { shared }), ...files }),
        Layer.succeedContext(core)
      )
    )
    const own = Context.get(exporter, Exporter)
    const context = Context.merge(Context.merge(core, model), exporter).pipe(
      Context.add(Exporter, reached === undefined ? own : { ...own, reached })
    )
    const sockets = yield* serve({
      root,
      uid,
      agents: [{ name: "build" }],
      temp: daybook(":memory:"),
      ...options
    }).pipe(Effect.provide(context))
    return { context, sockets, root, path: sockets[0]?.path ?? "" }
  })

/** `open` in a separate scope, which can be closed before the test's. */
export const openFor = Effect.fnUntraced(function* (options: Options) {
  const scope = yield* Effect.acquireRelease(Scope.make(), (scope, exit) => Scope.close(scope, exit))
  const served = yield* Scope.extend(open(options), scope)
  return { ...served, close: Scope.close(scope, Exit.void) }
})

export type Served = Effect.Effect.Success<ReturnType<typeof open>>

/** A new root and its server. */
export const fresh = (options: Omit<Options, "root"> = {}) =>
  Effect.flatMap(temporaryFolder, (root) => open({ root, ...options }))

/** The served model's script. */
export const script = <A, E>(
  { context }: Served,
  use: (model: Context.Tag.Service<ScriptedModel.ScriptedModel>) => Effect.Effect<A, E>
) => use(Context.get(context, ScriptedModel.ScriptedModel))

/** The answer "one" to the next request; it begins when the gate opens. */
export const holdOne = (served: Served) =>
  Effect.tap(Deferred.make<void>(), (gate) =>
    script(served, ({ answer }) =>
      answer(ScriptedModel.held([], gate, [...ScriptedModel.textParts("t", "one"), ScriptedModel.finish()]))
    )
  )

/** A server whose agent was removed after the run `m1`: a client's `m2` could not begin, and the client got the error. */
export const withoutAgent = Effect.fnUntraced(function* (root: string) {
  const agent = { name: "coder", system: "You write code.", permissions: [] }
  const serve = { agents: [{ name: "coder" }] }
  const before = yield* openFor({ root, runtime: { agents: [agent] }, serve })
  yield* script(before, ({ answer }) => answer(ScriptedModel.says("one")))
  const first = yield* connect(before.path)
  yield* first.ask({ op: "send", id: "m1", input: "first" })
  yield* first.untilType("done")
  yield* before.close
  const served = yield* openFor({ root, serve })
  const client = yield* connect(served.path)
  yield* client.ask({ op: "send", id: "m2", input: "second" })
  return { agent, serve, served, client, refused: yield* client.next }
})

/** Runs an effect on the runtime behind the sockets. */
export const runtimeOf = <A, E>(
  { context }: Served,
  use: (sessions: Context.Tag.Service<typeof Sessions>) => Effect.Effect<A, E>
) => use(Context.get(context, Sessions))

/** The last sequence number of a session's log. */
export const latestOf = ({ context }: Served, sessionID: SessionID) => Context.get(context, EventLog).latest(sessionID)

/** A received frame: any JSON object. */
export type Frame = Readonly<Record<string, unknown>>

export interface Client {
  /** Writes the request as one line. */
  readonly ask: (request: Frame) => Effect.Effect<void>
  readonly write: (text: string) => Effect.Effect<void>
  /** The next frame. */
  readonly next: Effect.Effect<Frame>
  /** Frames up to and including the first that fits. */
  readonly until: (fits: (frame: Frame) => boolean) => Effect.Effect<ReadonlyArray<Frame>>
  /** Frames up to and including the first of this type. */
  readonly untilType: (type: string) => Effect.Effect<ReadonlyArray<Frame>>
  /** The remaining frames, until the server ends the connection. */
  readonly rest: Effect.Effect<ReadonlyArray<Frame>>
  /** Stops sending; answers still arrive. */
  readonly finish: Effect.Effect<void>
  /** Disconnects immediately. */
  readonly leave: Effect.Effect<void>
  /** The server has ended the connection. */
  readonly ended: Effect.Effect<void>
  readonly socket: Socket
}

const parse = (line: string): Frame => {
  // Not decoded with the frame's schema: the tests check the raw object.
  return JSON.parse(line) as Frame
}

/** A client of the socket, until the scope closes. */
export const connect = (path: string): Effect.Effect<Client, never, Scope.Scope> =>
  Effect.gen(function* () {
    const frames = yield* Queue.unbounded<Frame>()
    const ended = yield* Deferred.make<void>()
    const socket = yield* Effect.acquireRelease(
      Effect.async<Socket>((resume) => {
        const made = connectTo({ path, allowHalfOpen: true })
        made.once("connect", () => resume(Effect.succeed(made)))
        made.once("error", (cause) => resume(Effect.die(cause)))
      }),
      (made) => Effect.sync(() => made.destroy())
    )
    let rest = ""
    socket.on("error", () => {})
    socket.setEncoding("utf8")
    socket.on("data", (text: string) => {
      const lines = (rest + text).split("\n")
      rest = lines.pop() ?? ""
      for (const line of lines) Queue.unsafeOffer(frames, parse(line))
    })
    socket.on("end", () => Deferred.unsafeDone(ended, Exit.void))
    socket.on("close", () => Deferred.unsafeDone(ended, Exit.void))
    const write = (text: string) => Effect.sync(() => void socket.write(text))
    const until = (fits: (frame: Frame) => boolean) =>
      Effect.gen(function* () {
        const seen: Array<Frame> = []
        for (;;) {
          const frame = yield* waitingFor(`a frame after ${JSON.stringify(seen.slice(-3))}`)(Queue.take(frames))
          seen.push(frame)
          if (fits(frame)) return seen
        }
      })
    return {
      ask: (request) => write(`${JSON.stringify(request)}\n`),
      write,
      next: waitingFor("a frame of the server")(Queue.take(frames)),
      until,
      untilType: (type) => until((frame) => frame["type"] === type),
      rest: Effect.zipRight(Deferred.await(ended), Effect.map(Queue.takeAll(frames), Chunk.toReadonlyArray)),
      finish: Effect.sync(() => void socket.end()),
      leave: Effect.sync(() => void socket.destroy()),
      ended: Deferred.await(ended),
      socket
    }
  })

/** The texts of deltas, joined. */
export const deltasOf = (frames: ReadonlyArray<Frame>): string =>
  frames.map((frame) => (frame["type"] === "delta" ? String(frame["text"]) : "")).join("")

/** The types of frames; consecutive deltas count as one. */
export const typesOf = (frames: ReadonlyArray<Frame>): ReadonlyArray<string> =>
  frames.map((frame) => String(frame["type"])).filter((type, at, all) => type !== "delta" || all[at - 1] !== "delta")

/** The text of a message frame. */
export const textOf = (frame: Frame | undefined): string => {
  const content = frame?.["content"]
  return Array.isArray(content) ? content.map((block: { readonly text?: string }) => block.text ?? "").join("") : ""
}
