/** Nodes of the command: real processes of `daybook serve --node` over one schema of a real PostgreSQL, each with a model. */
import { once } from "node:events"
import { mkdirSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { Effect, Queue, Schema, type Scope, Stream } from "effect"
import { freshSchema, postgres } from "../../support/Postgres.ts"
import { waitingFor } from "../../support/Waiting.ts"
import * as ModelServer from "../../cli/support/ModelServer.ts"
import { type Place, place } from "../../cli/support/Process.ts"

export const freePort = Effect.promise(async () => {
  const socket = createServer().listen(0, "127.0.0.1")
  await once(socket, "listening")
  const address = socket.address()
  socket.close()
  return typeof address === "object" && address !== null ? address.port : 0
})

/** The address of a database of its own. */
export const database = Effect.gen(function* () {
  const [{ port }, { schema }] = [yield* postgres, yield* freshSchema]
  return `postgres://postgres@127.0.0.1:${port}/postgres?schema=${schema}`
})

const Ready = Schema.parseJson(Schema.Struct({ http: Schema.Struct({ inspector: Schema.String }) }))

const Frame = Schema.parseJson(Schema.Struct({ frame: Schema.String }, { key: Schema.String, value: Schema.Unknown }))
type Frame = typeof Frame.Type

/** A place where every tool is permitted. */
const permitted = Effect.map(place, (here) => {
  mkdirSync(join(here.root, "config"))
  const config = join(here.root, "config", "config.yaml")
  writeFileSync(config, `agents: { build: { permissions: [{ permission: "*", resource: "*", verdict: allow }] } }`)
  return { here, config }
})

export interface ServedNode {
  readonly here: Place
  readonly env: Readonly<Record<string, string>>
  readonly address: string
  readonly model: ModelServer.ModelServer
  readonly process: Effect.Effect.Success<ReturnType<Place["startAlone"]>>
  readonly text: (path: string) => Effect.Effect<string>
  readonly get: (path: string) => Effect.Effect<unknown>
  readonly url: string
  readonly token: string
  readonly put: (path: string, body: unknown) => Effect.Effect<{ readonly status: number; readonly body: unknown }>
  readonly post: (path: string, body: unknown) => Effect.Effect<{ readonly status: number; readonly body: unknown }>
  /** The frames of a stream, as they come. */
  readonly frames: (path: string) => Effect.Effect<Queue.Dequeue<Frame>, never, Scope.Scope>
}

/** Starts a node, and waits until it serves. */
export const servedNode = (url: string, more: ReadonlyArray<string> = [], further: Record<string, string> = {}) =>
  Effect.gen(function* () {
    const model = yield* ModelServer.make
    const { config, here } = yield* permitted
    const env = {
      DAYBOOK_DB: url,
      DAYBOOK_BASE_URL: model.url,
      DAYBOOK_MODEL: "openai-compatible/held",
      DAYBOOK_CONFIG: config,
      ...further
    }
    const address = `127.0.0.1:${yield* freePort}`
    const words = ["serve", "--node", address, "--http", "127.0.0.1:0", "--json", "--show-token", ...more]
    const process = yield* here.startAlone(words, { env })
    const { http } = yield* Schema.decodeUnknown(Ready)(yield* process.until("stdout", (text) => text.includes("\n")))
    const [base = "", token = ""] = http.inspector.split("/#token=")
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" }
    const text: ServedNode["text"] = (path) =>
      Effect.promise((signal) => fetch(base + path, { signal, headers }).then((response) => response.text()))
    const get: ServedNode["get"] = (path) => Effect.map(text(path), (body) => JSON.parse(body))
    const sent = (method: string) => (path: string, body: unknown) =>
      Effect.promise(async (signal) => {
        const response = await fetch(base + path, { signal, method, headers, body: JSON.stringify(body) })
        const text = await response.text()
        return { status: response.status, body: text === "" ? undefined : JSON.parse(text) }
      })
    const frames: ServedNode["frames"] = Effect.fnUntraced(function* (path) {
      const heard = yield* Queue.unbounded<Frame>()
      const answer = yield* Effect.promise((signal) =>
        fetch(base + path, { signal, headers: { ...headers, accept: "application/x-ndjson" } })
      )
      const bytes = Stream.fromReadableStream({ evaluate: () => answer.body ?? new ReadableStream(), onError: String })
      yield* bytes.pipe(
        Stream.decodeText(),
        Stream.splitLines,
        Stream.filter((line) => line !== ""),
        Stream.mapEffect(Schema.decodeUnknown(Frame)),
        Stream.runForEach((frame) => Queue.offer(heard, frame)),
        // A node that is killed cuts its streams off.
        Effect.ignore,
        Effect.forkScoped
      )
      return heard
    })
    return {
      here,
      env,
      address,
      model,
      process,
      text,
      get,
      url: base,
      token,
      post: sent("POST"),
      put: sent("PUT"),
      frames
    }
  })

/** The first frame that this chooses. */
export const heardFrame = <A>(frames: Queue.Dequeue<Frame>, what: string, choose: (frame: Frame) => A | undefined) =>
  Effect.gen(function* () {
    for (;;) {
      const found = choose(yield* Queue.take(frames))
      if (found !== undefined) return found
    }
  }).pipe(waitingFor(`a frame: ${what}`))
