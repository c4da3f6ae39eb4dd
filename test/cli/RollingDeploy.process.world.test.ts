/** Servers that follow one another on one database. Method: real processes, a model on loopback, a tool that leaves traces. */
import { assert, beforeAll, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { build } from "./support/Bundle.ts"
import { held } from "./support/Held.ts"
import type { ModelServer } from "./support/ModelServer.ts"
import type { Place } from "./support/Process.ts"

beforeAll(() => void build())

const Ready = Schema.parseJson(Schema.Struct({ http: Schema.Struct({ inspector: Schema.String }) }))

/** Starts a server, and returns how to send it requests. */
const serving = Effect.fnUntraced(function* (
  here: Place,
  env: Readonly<Record<string, string>>,
  more: ReadonlyArray<string> = []
) {
  const words = ["serve", "--json", "--show-token", "--http", "127.0.0.1:0", ...more]
  const server = yield* here.startAlone(words, { env })
  const { http } = yield* Schema.decodeUnknown(Ready)(yield* server.until("stdout", (text) => text.includes("\n")))
  const [url, token = ""] = http.inspector.split("/#token=")
  const post = (path: string, body: unknown) =>
    Effect.promise((signal) =>
      fetch(`${url}${path}`, {
        signal,
        method: "POST",
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
        body: JSON.stringify(body)
      }).then((response) => response.text())
    )
  return { server, post }
})

/** A place where every tool is permitted. */
const permitted = Effect.gen(function* () {
  const { env, here, model } = yield* held
  const folder = join(here.root, "config")
  mkdirSync(folder)
  const rule = `{ permission: "*", resource: "*", verdict: allow }`
  writeFileSync(join(folder, "config.yaml"), `agents: { build: { permissions: [${rule}] } }`)
  return { here, model, env: { ...env, DAYBOOK_CONFIG: join(folder, "config.yaml") } }
})

/** Answers the next request with a command that leaves a line. */
const marks = (model: ModelServer, name: string) =>
  Effect.gen(function* () {
    const turn = yield* model.next
    yield* turn.toolCall(name, "bash", { command: `echo ${name} >> trace.txt` })
    yield* turn.finish("tool_calls")
  })

const answers = (model: ModelServer, text: string) =>
  Effect.gen(function* () {
    const turn = yield* model.next
    yield* turn.text(text)
    yield* turn.finish()
    return JSON.stringify(turn.body.messages)
  })

/** The types and outcomes of the session's events, once two activities have ended. */
const told = Effect.fnUntraced(function* (here: Place, env: Readonly<Record<string, string>>) {
  const events = yield* here.start(["events", "ses_roll", "--json", "--follow"], { env })
  const found = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map(([, name]) => name)
  const outcomes = /"outcome":"(\w+)"/g
  const text = yield* events.until("stdout", (text) => found(text, outcomes).length === 2)
  return {
    outcomes: found(text, outcomes),
    started: found(text, /"type":"session\.next\.(activity\.started)"/g).length,
    failed: found(text, /"type":"session\.next\.(tool\.failed|step\.failed)"/g)
  }
})

for (const beside of [false, true]) {
  it.scopedLive(
    `EX-820: at SIGTERM in mid-run, the server ${beside ? "beside" : "that starts next"} goes on with the activity and its queue`,
    () =>
      Effect.gen(function* () {
        const { env, here, model } = yield* permitted
        const first = yield* serving(here, env)
        const besideIt = beside ? yield* serving(here, env) : undefined
        yield* first.post("/sessions", { id: "ses_roll", location: { directory: here.cwd } })
        yield* first.post("/sessions/ses_roll/prompts", { prompt: { text: "go" } })
        yield* marks(model, "one")
        const turn = yield* model.next
        yield* first.post("/sessions/ses_roll/prompts", { prompt: { text: "afterwards" }, delivery: "queue" })
        yield* first.server.signal("SIGTERM")
        yield* first.server.until("stderr", (text) => text.includes("stopping: SIGTERM"))
        yield* turn.toolCall("two", "bash", { command: "echo two >> trace.txt" })
        yield* turn.finish("tool_calls")
        const { code, stderr } = yield* first.server.ended
        assert.strictEqual(code, 0)
        assert.notMatch(stderr, / (?:warning|error) /)
        if (besideIt === undefined) yield* serving(here, env)
        yield* marks(model, "three")
        assert.notInclude(yield* answers(model, "All done."), "afterwards")
        assert.include(yield* answers(model, "And that."), "afterwards")
        assert.deepStrictEqual(yield* told(here, env), {
          outcomes: ["completed", "completed"],
          started: 2,
          failed: []
        })
        assert.strictEqual(readFileSync(join(here.cwd, "trace.txt"), "utf8"), "one\ntwo\nthree\n")
      })
  )
}

it.scopedLive("EX-823: a turn that outlasts the limit is interrupted, and the queue goes on in the next server", () =>
  Effect.gen(function* () {
    const { env, here, model } = yield* permitted
    const first = yield* serving(here, env, ["--drain", "1"])
    yield* first.post("/sessions", { id: "ses_roll", location: { directory: here.cwd } })
    yield* first.post("/sessions/ses_roll/prompts", { prompt: { text: "go" } })
    yield* model.next
    yield* first.post("/sessions/ses_roll/prompts", { prompt: { text: "afterwards" }, delivery: "queue" })
    yield* first.server.signal("SIGTERM")
    assert.strictEqual((yield* first.server.ended).code, 0)
    yield* serving(here, env)
    assert.include(yield* answers(model, "And that."), "afterwards")
    assert.deepStrictEqual((yield* told(here, env)).outcomes, ["interrupted", "completed"])
  })
)
