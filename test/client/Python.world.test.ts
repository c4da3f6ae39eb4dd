/** A client in another language, written from the API's description and the spec alone. */
import { spawn } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { eventJson } from "../../packages/cli/src/render/EventLine.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { begin, readAll, renamed, session } from "../contracts/Samples.ts"
import { temporaryFolder } from "../support/Harness.ts"
import { lacks } from "../support/Parts.ts"
import { Served, token } from "../server/http/support/ServedApi.ts"
import * as Cutter from "./support/Cutter.ts"
import { layer as served } from "./support/ServedClient.ts"

const script = fileURLToPath(new URL("python/replay.py", import.meta.url))

/** Runs the client until its copy has so many events, then kills it: no handler of it runs. */
const copying = (url: string, sessionID: string, file: string, until: number) =>
  Effect.async<void>((resume) => {
    const child = spawn("python3", [script, url, sessionID, file], {
      env: { ...process.env, DAYBOOK_TOKEN: token },
      stdio: ["ignore", "pipe", "pipe"]
    })
    let errors = ""
    child.stderr.on("data", (text) => (errors += String(text)))
    createInterface({ input: child.stdout }).on("line", (line) => {
      if (Number(line) >= until) child.kill("SIGKILL")
    })
    child.on("close", (code, signal) =>
      resume(signal === "SIGKILL" ? Effect.void : Effect.dieMessage(`the client ended with ${code}: ${errors}`))
    )
    return Effect.sync(() => child.kill("SIGKILL"))
  })

layer(served())("a client in python", (it) => {
  it.scoped.skipIf(lacks("python"))(
    "HT-66: killed and cut off at any moment, it ends with the bytes of daybook events --json",
    () =>
      Effect.gen(function* () {
        const [log, { url }, id] = [yield* EventLog, yield* Served, session()]
        const folder = yield* temporaryFolder
        const file = join(folder, "events.jsonl")
        yield* begin(id, 150)
        const cutter = yield* Cutter.make(url, (connection, request) =>
          request.includes("/openapi.json") ? undefined : 1_500 + ((connection * 7_919) % 5_000)
        )
        for (const [index, until] of [1, 40, 41, 120, 151, 170, 200].entries()) {
          const before = index === 0 ? [] : Array.from({ length: 10 }, (_, n) => renamed(`${index}.${n} "ü" \u2028 😀`))
          for (const each of before) yield* log.append(id, [each])
          yield* copying(cutter.url, id, file, until)
        }
        const events = yield* readAll(id)
        yield* copying(cutter.url, id, file, events.length)
        const expected = events.map((event) => `${eventJson(event, false)}\n`).join("")
        assert.strictEqual(readFileSync(file, "utf8"), expected)
        assert.lengthOf(events, 211)
        assert.isAtLeast(cutter.connections(), 20)
      })
  )
})
