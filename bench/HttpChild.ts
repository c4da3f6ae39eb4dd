/**
 * One side of the HTTP figures, in a process of its own: our API, or a bare `node:http` server with one FULL insert a request.
 * It prints its port. Each line of its input is an order; it answers one with a line.
 */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { createInterface } from "node:readline"
import Sqlite from "better-sqlite3"
import { Effect, Layer, Schema } from "effect"
import * as Daybook from "../packages/embedded/src/Daybook.ts"
import { SessionID } from "../packages/log/src/domain/Identifiers.ts"
import { EventLog } from "../packages/log/src/log/EventLog.ts"
import * as Models from "../packages/models/src/Models.ts"
import * as HttpServing from "../packages/server/src/http/HttpServing.ts"
import { AccessToken } from "../packages/server/src/http/AccessToken.ts"
import * as Workload from "./Workload.ts"

/** What the parent orders. */
const Order = Schema.parseJson(
  Schema.Union(
    /** Creates a session with so many events. */
    Schema.Struct({ do: Schema.Literal("fill"), sessionID: SessionID, events: Schema.Int }),
    /** Appends an event with the time, so often, so many milliseconds apart. */
    Schema.Struct({ do: Schema.Literal("publish"), sessionID: SessionID, times: Schema.Int, everyMillis: Schema.Int })
  )
)

const say = (line: string) => process.stdout.write(`${line}\n`)

/** Milliseconds that are the same in every process of the machine. */
const clock = (): number => performance.timeOrigin + performance.now()

const obey = Effect.fnUntraced(function* (order: typeof Order.Type) {
  const log = yield* EventLog
  const drafts = Workload.events()
  if (order.do === "fill") {
    yield* log.append(order.sessionID, [Workload.created])
    for (let n = 1; n < order.events; n++) yield* log.append(order.sessionID, [drafts.next().value])
    return
  }
  for (let n = 0; n < order.times; n++) {
    yield* log.append(order.sessionID, [Workload.timed(clock())])
    yield* Effect.sleep(order.everyMillis)
  }
})

const orders = Effect.flatMap(Effect.runtime<EventLog>(), (runtime) =>
  Effect.async<never>(() => {
    createInterface(process.stdin).on("line", (line) => {
      const work = Effect.flatMap(Schema.decode(Order)(line), obey)
      void Effect.runPromise(Effect.provide(work, runtime)).then(() => say("done"))
    })
  })
)

const ours = (filename: string, token: AccessToken) =>
  Effect.gen(function* () {
    // The bare side refuses no request of a token that sends many.
    const limits = { rate: 1_000_000 }
    const { url } = yield* HttpServing.serve({ token, version: "bench", host: "127.0.0.1", port: 0, limits })
    say(`port ${new URL(url).port}`)
    return yield* orders
  }).pipe(Effect.scoped, Effect.provide(Layer.provideMerge(Daybook.layer({ filename }), Models.layer)))

/** The least that keeps a prompt: parse, one insert, an answer. */
const bare = (filename: string) => {
  const db = new Sqlite(filename)
  db.pragma("journal_mode = WAL")
  db.pragma("synchronous = FULL")
  db.exec("CREATE TABLE prompt (id TEXT PRIMARY KEY, text TEXT NOT NULL)")
  const insert = db.prepare("INSERT INTO prompt VALUES (?, ?)")
  const Body = Schema.parseJson(Schema.Struct({ id: Schema.String, prompt: Schema.Struct({ text: Schema.String }) }))
  const decode = Schema.decodeSync(Body)
  const server = createServer((request, response) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => {
      const { id, prompt } = decode(Buffer.concat(chunks).toString("utf8"))
      insert.run(id, prompt.text)
      const answer = JSON.stringify({ id, text: prompt.text })
      response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(answer) })
      response.end(answer)
    })
  })
  server.listen(0, "127.0.0.1", () => say(`port ${(server.address() as AddressInfo).port}`))
}

// The parent has ended.
process.stdin.on("end", () => process.exit(0)).resume()

const [mode, filename = "", token = ""] = process.argv.slice(2)
if (mode === "bare") bare(filename)
else void Effect.runPromise(ours(filename, AccessToken.make(token)))
