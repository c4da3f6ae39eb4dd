/**
 * One side of the figures of streams, in a process of its own: our API with a model server, or the floor: a bare `node:http` server
 * that asks the model server, parses its frames, writes each delta to its reader, and keeps the answer with one FULL insert.
 * It prints its port. Each line of its input asks for its usage so far.
 */
import { createServer, request as ask } from "node:http"
import type { AddressInfo } from "node:net"
import { readFileSync, writeFileSync } from "node:fs"
import { createInterface } from "node:readline"
import Sqlite from "better-sqlite3"
import { Effect, Layer, Redacted } from "effect"
import * as Garbage from "../packages/cli/src/support/Garbage.ts"
import * as Daybook from "../packages/embedded/src/Daybook.ts"
import * as Models from "../packages/models/src/Models.ts"
import * as HttpServing from "../packages/server/src/http/HttpServing.ts"
import { AccessToken } from "../packages/server/src/http/AccessToken.ts"

const say = (line: string) => process.stdout.write(`${line}\n`)

const [side, filename = "", modelPort = "", token = ""] = process.argv.slice(2)
const modelServer = `http://127.0.0.1:${modelPort}/v1`

const ours = Effect.gen(function* () {
  yield* Garbage.started
  const limits = { rate: 1_000_000 }
  const listener = { token: AccessToken.make(token), version: "bench", host: "127.0.0.1", port: 0, limits }
  const { url } = yield* HttpServing.serve(listener)
  say(`port ${new URL(url).port}`)
  return yield* Effect.never
}).pipe(
  Effect.scoped,
  Effect.provide(
    Layer.provideMerge(
      Daybook.layer({ filename }),
      Models.layerOptions({
        providers: { bench: { api: "openai-compatible", baseUrl: modelServer, apiKey: Redacted.make("key") } },
        default: { providerID: "bench", id: "streamer" }
      })
    )
  )
)

const floor = () => {
  const db = new Sqlite(filename)
  db.pragma("journal_mode = WAL")
  db.pragma("synchronous = FULL")
  db.exec("CREATE TABLE answer (text TEXT NOT NULL)")
  const insert = db.prepare("INSERT INTO answer VALUES (?)")
  const server = createServer((request, response) => {
    request.resume()
    response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders()
    const body = JSON.stringify({ stream: true, messages: [{ role: "user", content: "Go on." }] })
    const headers = { "content-type": "application/json", "content-length": body.length }
    const sent = ask(`${modelServer}/chat/completions`, { method: "POST", headers }, (answer) => {
      let [rest, text] = ["", ""]
      answer.setEncoding("utf8").on("data", (chunk: string) => {
        const lines = (rest + chunk).split("\n")
        rest = lines.pop() ?? ""
        for (const line of lines) {
          if (!line.startsWith("data: {")) continue
          const delta: unknown = JSON.parse(line.slice(6)).choices[0].delta.content
          if (typeof delta !== "string") continue
          text += delta
          response.write(`event: live\ndata: ${JSON.stringify({ live: { data: { delta } } })}\n\n`)
        }
      })
      answer.on("end", () => {
        insert.run(text)
        response.end(`event: event\ndata: ${JSON.stringify({ type: "session.next.text.ended", data: { text } })}\n\n`)
      })
    })
    sent.end(body)
  })
  server.listen(0, "127.0.0.1", () => say(`port ${(server.address() as AddressInfo).port}`))
}

/** The most bytes that were resident since the last call. `maxRSS` would begin with those of the process that started this one. */
const resident = (): number => {
  const peak = /VmHWM:\s+(\d+) kB/.exec(readFileSync("/proc/self/status", "utf8"))?.[1]
  writeFileSync("/proc/self/clear_refs", "5")
  return Number(peak) * 1_024
}

createInterface(process.stdin)
  .on("line", () => {
    const { system, user } = process.cpuUsage()
    say(JSON.stringify({ cpu: system + user, resident: resident() }))
  })
  // The parent has ended.
  .on("close", () => process.exit(0))

if (side === "floor") floor()
else void Effect.runPromise(ours)
