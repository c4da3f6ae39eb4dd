/** A server whose garbage is collected all the time, under ordinary requests. */
import { assert, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { cases } from "../support/Cases.ts"
import { place } from "./support/Process.ts"

/** Collects often, while no JavaScript runs. */
const collecting = `require("node:v8").setFlagsFromString("--expose-gc")
const collect = require("node:vm").runInNewContext("gc")
setInterval(collect, 150).unref()
`

const Ready = Schema.parseJson(Schema.Struct({ http: Schema.Struct({ url: Schema.String, inspector: Schema.String }) }))

it.scopedLive(
  "PA-12: a server answers 2,000 mixed requests while collections are forced, and ends as asked",
  () =>
    Effect.gen(function* () {
      const here = yield* place
      const preload = join(here.root, "collecting.cjs")
      writeFileSync(preload, collecting)
      const words = ["serve", "--json", "--http", "127.0.0.1:0", "--show-token", "--log-level", "warning"]
      const server = yield* here.startAlone(words, { env: { NODE_OPTIONS: `--require=${preload}` } })
      const line = yield* server.until("stdout", (text) => text.includes("\n"))
      const { http } = yield* Schema.decodeUnknown(Ready)(line)
      const authorization = `Bearer ${http.inspector.split("#token=")[1] ?? ""}`
      const ask = (method: string, path: string, body?: unknown) =>
        Effect.promise(async (signal) => {
          const headers = { authorization, ...(body === undefined ? {} : { "content-type": "application/json" }) }
          const init = { method, headers, signal, ...(body === undefined ? {} : { body: JSON.stringify(body) }) }
          const response = await fetch(`${http.url}${path}`, init)
          await response.arrayBuffer()
          return response.status
        })
      const id = (n: number) => `ses_alive${n % 20}`
      const promptOf = (n: number) => ({ id: `msg_alive${n}`, prompt: { text: `${n}` } })
      const requests: ReadonlyArray<readonly [number, (n: number) => ReturnType<typeof ask>]> = [
        [201, (n) => ask("POST", "/sessions", { id: id(n), location: { directory: here.cwd } })],
        // Every fourth is a new prompt, the others repeat it.
        [200, (n) => ask("POST", `/sessions/${id(n)}/prompts`, promptOf(n - (Math.floor(n / 20) % 4) * 20))],
        [200, (n) => ask("GET", `/sessions/${id(n)}/messages?limit=20`)],
        [200, (n) => ask("GET", `/sessions/${id(n)}/history?limit=20`)],
        [200, (n) => ask("GET", `/sessions?limit=${(n % 20) + 1}`)],
        [200, (n) => ask("GET", `/search?query=${n}`)],
        [200, (n) => ask("GET", `/sessions/${id(n)}/tree`)],
        [404, (n) => ask("GET", `/sessions/ses_none${n}/messages`)],
        [400, () => ask("POST", "/sessions", { location: 7 })],
        [200, () => ask("GET", "/stats")]
      ]
      const create = requests[0]?.[1] ?? (() => Effect.succeed(0))
      yield* Effect.forEach(
        Array.from({ length: 20 }, (_, n) => n),
        create
      )
      yield* Effect.forEach(
        Array.from({ length: cases(2_000) }, (_, n) => n),
        (n) => {
          const [expected, request] = requests[n % requests.length] ?? [0, create]
          // Sessions differ from the kinds of requests, so that each session gets each kind.
          return Effect.map(request(Math.floor(n / requests.length)), (status) =>
            assert.strictEqual(status, expected, `request ${n}`)
          )
        },
        { concurrency: 16 }
      )
      yield* server.signal("SIGTERM")
      const { code, signal, stderr } = yield* server.ended
      assert.deepStrictEqual([code, signal, stderr], [0, null, ""])
    }),
  120_000
)
