/**
 * Compiles the code of the documentation against the packages, and runs `examples/` offline. The code of the guides for
 * embedders runs as it is printed, with a scripted model behind real HTTP.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { spawn } from "node:child_process"
import { createInterface } from "node:readline"
import { Effect, Redacted } from "effect"
import { isServer } from "../../packages/models/src/Providers.ts"
import { type Action, modelServers, start } from "../support/ModelServers.ts"
import { compile, packages, root, run } from "./support/Packages.ts"

const folder = mkdtempSync(join(tmpdir(), "daybook-examples-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** The TypeScript blocks of a page or of a README. */
const readme = (file: string) =>
  [...readFileSync(join(root, file), "utf8").matchAll(/^```ts\n([\s\S]*?)^```/gm)].map(([, text = ""]) => text)

/** The blocks of `@example` in a module's comments. */
const documented = (file: string) =>
  [...readFileSync(file, "utf8").matchAll(/^ \* @example\n \* ```ts\n([\s\S]*?)^ \* ```/gm)].map(([, text = ""]) =>
    text.replaceAll(/^ \* ?/gm, "")
  )

const sources = packages.flatMap((name) => {
  const src = join(root, "packages", name, "src")
  return readdirSync(src, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts"))
    .map((file) => join(src, file))
})
const pages = ["index.md", ...readdirSync(join(root, "docs", "guides")).map((name) => join("guides", name))].map(
  (name) => join("docs", name)
)
/** The blocks of guides that run: the file of each, its guide, and its number there. */
const guides = {
  "support-bot": ["support-bot", 0],
  "structured-answer": ["structured-answer", 0],
  grade: ["structured-answer", 1],
  permissions: ["permissions", 0],
  "allow-all": ["permissions", 1],
  recover: ["recover", 0],
  texts: ["follow-the-log", 0],
  "follow-the-log": ["follow-the-log", 1],
  count: ["follow-the-log", 2],
  "compare-models": ["compare-models", 0],
  "test-your-agent": ["test-your-agent", 0],
  service: ["run-as-a-service", 0]
} as const
/** Programs that use what a guide exports, or that make what it needs. */
const users = {
  "use-recover": `import { Sessions } from "@daybook/embedded"
    import { Console, Effect } from "effect"
    import { resuming, review } from "./recover.js"
    const program = Effect.gen(function* () {
      const sessions = yield* Sessions.Sessions
      const { id } = yield* sessions.create({ location: { directory: process.cwd() } })
      yield* sessions.prompt({ sessionID: id, prompt: { text: "Are you there?" }, resume: false })
      yield* review
      yield* Console.log((yield* sessions.waiting).length)
    })
    await Effect.runPromise(Effect.provide(program, resuming))`,
  "use-grade": `import { Daybook, Sessions } from "@daybook/embedded"
    import { Models } from "@daybook/models"
    import { Effect, Layer } from "effect"
    import { grade } from "./grade.js"
    const graded = Effect.gen(function* () {
      const sessions = yield* Sessions.Sessions
      const { id } = yield* sessions.create({ location: { directory: process.cwd() } })
      const given = [yield* grade(id, "It was fine."), yield* Effect.flip(grade(id, "And this?"))]
      console.log(JSON.stringify(given))
    })
    const runtime = Daybook.layer({ filename: ":memory:", builtins: Effect.succeed([]), projectConfig: false })
    await Effect.runPromise(Effect.provide(graded, Layer.provide(runtime, Models.layer)))`,
  "use-texts": `import { Daybook, Sessions } from "@daybook/embedded"
    import { Models } from "@daybook/models"
    import { Effect, Fiber, Layer } from "effect"
    import { texts } from "./texts.js"
    const program = Effect.gen(function* () {
      const sessions = yield* Sessions.Sessions
      const { id } = yield* sessions.create({ location: { directory: process.cwd() } })
      const following = yield* Effect.fork(texts(id, 0))
      yield* sessions.ask({ sessionID: id, prompt: { text: "Which day is it?" } })
      yield* Fiber.join(following)
    })
    const runtime = Daybook.layer({ filename: ":memory:", builtins: Effect.succeed([]), projectConfig: false })
    await Effect.runPromise(Effect.provide(program, Layer.provide(runtime, Models.layer)))`,
  "use-count": `import { Consumer, Store } from "@daybook/log"
    import { SqlClient } from "@effect/sql"
    import { Effect } from "effect"
    import { count } from "./count.js"
    const program = Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* sql\`CREATE TABLE acme_count (events INTEGER NOT NULL)\`
      yield* sql\`INSERT INTO acme_count VALUES (0)\`
      yield* Effect.fork(count)
      // Each look is a statement of the database.
      const [state] = yield* Effect.repeat(Consumer.list, { until: ([first]) => first !== undefined && first.lag === 0 })
      const [counted] = yield* sql\`SELECT events FROM acme_count\`
      const [stored] = yield* sql\`SELECT count(*) AS events FROM event\`
      console.log(JSON.stringify([state?.name, counted, stored]))
    })
    await Effect.runPromise(Effect.provide(program, Store.layer({ filename: "support.sqlite" })))`,
  "use-service": `import { allowAll } from "./allow-all.js"
    const asked = import("./service.js")
    const state = { isOver: false }
    void asked.finally(() => (state.isOver = true))
    // Each look is a round trip.
    while (!state.isOver) await allowAll()
    await asked`,
  "use-compare-models": `import { Sessions } from "@daybook/embedded"
    import { Effect } from "effect"
    import { both, runtime } from "./compare-models.js"
    const asked = Effect.gen(function* () {
      const sessions = yield* Sessions.Sessions
      const { id } = yield* sessions.create({ location: { directory: process.cwd() } })
      yield* sessions.ask({ sessionID: id, prompt: { text: "Which day is it?" } })
      return id
    })
    const id = await Effect.runPromise(Effect.provide(asked, runtime))
    console.log(JSON.stringify(await Effect.runPromise(both(id))))`,
  "use-test-your-agent": `import { Daybook, RecordedModel, Sessions } from "@daybook/embedded"
    import { Models } from "@daybook/models"
    import { Effect, Layer, Schema } from "effect"
    import { writeFileSync } from "node:fs"
    const recorded = Effect.gen(function* () {
      const sessions = yield* Sessions.Sessions
      const { id } = yield* sessions.create({ location: { directory: process.cwd() } })
      yield* sessions.ask({ sessionID: id, prompt: { text: "Where is my order 1042?" }, expand: false })
      return yield* RecordedModel.record(id)
    })
    const runtime = Daybook.layer({ filename: ":memory:", builtins: Effect.succeed([]), projectConfig: false })
    const fixture = await Effect.runPromise(Effect.provide(recorded, Layer.provide(runtime, Models.layer)))
    writeFileSync("order.fixture.json", JSON.stringify(Schema.encodeSync(RecordedModel.Fixture)(fixture)))`
}
const blocks = [
  ...readme("README.md"),
  ...pages.flatMap(readme),
  ...packages.flatMap((name) => readme(`packages/${name}/README.md`)),
  ...sources.flatMap(documented)
]
const examples = readdirSync(join(root, "examples")).filter((file) => file.endsWith(".ts"))

describe("the documentation", () => {
  beforeAll(async () => {
    symlinkSync(join(root, "node_modules"), join(folder, "node_modules"))
    mkdirSync(join(folder, "blocks"))
    for (const file of examples) copyFileSync(join(root, "examples", file), join(folder, file))
    for (const [name, [page, block]] of Object.entries(guides)) {
      const text = readme(join("docs", "guides", `${page}.md`))[block] ?? ""
      // The server of the test has another port and another folder.
      const placed = text
        .replace('"http://127.0.0.1:4310"', 'process.env["SERVER"] ?? ""')
        .replace('"/srv/shop"', "process.cwd()")
      writeFileSync(join(folder, `${name}.ts`), placed)
    }
    for (const [name, text] of Object.entries(users)) writeFileSync(join(folder, `${name}.ts`), text)
    blocks.forEach((text, index) => writeFileSync(join(folder, "blocks", `${index}.ts`), text))
    const compilerOptions = {
      strict: true,
      exactOptionalPropertyTypes: true,
      module: "nodenext",
      target: "es2022",
      types: ["node"],
      skipLibCheck: true
    }
    writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module", private: true }))
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.ts", "blocks/*.ts"] }))
    await compile(folder)
  })

  it("PA-8: the TypeScript blocks of pages, READMEs and comments, and the examples, compile", () => {
    assert.isAbove(blocks.length, 15)
    assert.deepStrictEqual(examples, ["embed.ts", "own-model.ts", "own-tool.ts", "replay.ts", "telemetry.ts"])
  })

  const example = (name: string) => run(folder, process.execPath, `${name}.js`)

  it("PA-9: embed prints the events of a prompt, and replay the same events from their log", async () => {
    assert.match(await example("embed"), /^1 session\.next\.prompt\.admitted\n[\s\S]*activity\.settled\n$/)
    assert.match(await example("replay"), /session\.next\.prompt\.admitted\n[\s\S]*activity\.settled\n/)
    // The cursor is in the database, so the next run begins there.
    assert.strictEqual(await example("replay"), "")
  })

  it("PA-9: own-model answers with its own sentence", async () => {
    assert.strictEqual(await example("own-model"), "I am a model of your own.\n")
  })

  it("PA-9: own-tool prints what its handler returned", async () => {
    assert.strictEqual(await example("own-tool"), '{"count":6}\n')
  })

  it("PA-9: telemetry collects the span of the prompt", async () => {
    assert.strictEqual(await example("telemetry"), "Sessions.prompt: true\n")
  })

  /** A scripted model, and the variables that lead a program to it. */
  const scripted = Effect.fnUntraced(function* (...answers: ReadonlyArray<ReadonlyArray<Action>>) {
    const [server] = modelServers.filter(({ profile }) => profile === "anthropic")
    assert(server !== undefined)
    const model = yield* start(server)
    for (const answer of answers) model.answer(...answer)
    const { provider } = model
    assert(isServer(provider) && provider.apiKey !== undefined)
    const env = {
      ANTHROPIC_BASE_URL: provider.baseUrl ?? "",
      ANTHROPIC_API_KEY: Redacted.value(provider.apiKey),
      DAYBOOK_MODEL: `anthropic/${server.model}`
    }
    return { model, env }
  })

  const settings = (env: Readonly<Record<string, string>>) =>
    Object.entries(env).map(([key, value]) => `${key}=${value}`)

  const guide = (name: string, env: Readonly<Record<string, string>>) =>
    Effect.promise(() => run(folder, "env", ...settings(env), process.execPath, `${name}.js`))

  /** The first line of a program that does not end. */
  const firstLine = (name: string, env: Readonly<Record<string, string>>) =>
    Effect.promise(async () => {
      const child = spawn(process.execPath, [`${name}.js`], { cwd: folder, env: { ...process.env, ...env } })
      const ended = new Promise((resolve) => child.once("close", resolve))
      for await (const line of createInterface(child.stdout)) {
        child.kill("SIGTERM")
        await ended
        return line
      }
      throw new Error(`${name} ended`)
    })

  /** The address of a server that the program prints, while the program runs. */
  const serving = ([program, ...words]: readonly [string, ...Array<string>], env: Readonly<Record<string, string>>) =>
    Effect.map(
      Effect.acquireRelease(
        Effect.promise(async () => {
          const child = spawn(program, words, { cwd: folder, env: { ...process.env, ...env } })
          for await (const line of createInterface(child.stdout)) {
            const [, port] = /http:\/\/[\w.]+:(\d+)/.exec(line) ?? []
            if (port !== undefined) return { child, url: `http://127.0.0.1:${port}` }
          }
          throw new Error(`${words.join(" ")} ended`)
        }),
        ({ child }) =>
          Effect.promise(async () => {
            const ended = new Promise((resolve) => child.once("close", resolve))
            child.kill("SIGTERM")
            await ended
          })
      ),
      ({ url }) => url
    )

  it.scoped("PA-9: the support bot looks the order up, and answers the same message once", () =>
    Effect.gen(function* () {
      const text = "It left the warehouse on Monday."
      const { env, model } = yield* scripted([{ tool: "order", input: { number: "1042" } }], [{ text }])
      assert.strictEqual(yield* guide("support-bot", env), `${text}\n`)
      assert.include(JSON.stringify(model.received[1]?.body), "left the warehouse on Monday")
      assert.strictEqual(yield* guide("support-bot", env), `${text}\n`)
      assert.strictEqual(model.received.length, 2)
    })
  )

  it.scoped("PA-9: the structured answer is decoded", () =>
    Effect.gen(function* () {
      const input = { title: "A lamp smokes", product: "lamp", urgent: true, due: "2026-12-01T00:00:00.000Z" }
      const { env } = yield* scripted([{ tool: "structured_output", input }], [{ text: "Done." }])
      assert.strictEqual(yield* guide("structured-answer", env), "lamp, urgent, due 2026-12-01T00:00:00.000Z\n")
    })
  )

  it.scoped("PA-9: a grade is given, and a run that gives none says why", () =>
    Effect.gen(function* () {
      const given = { tool: "structured_output", input: { value: "good" } }
      const refusal = [{ text: "I would rather not." }]
      const { env } = yield* scripted([given], ...Array.from({ length: 4 }, () => refusal))
      const lines = (yield* guide("use-grade", env)).trimEnd().split("\n")
      const [grade, why] = JSON.parse(lines.at(-1) ?? "")
      assert.strictEqual(grade, "good")
      assert.include(why, "answer")
    })
  )

  it.scoped("PA-9: the texts of a session are printed with their numbers", () =>
    Effect.gen(function* () {
      const { env } = yield* scripted([{ text: "It is Monday." }])
      assert.match(yield* firstLine("use-texts", env), /^\d+ It is Monday\.$/)
    })
  )

  it.scoped("PA-9: events are counted once, in the transaction of their cursor", () =>
    Effect.gen(function* () {
      const { env } = yield* scripted([{ text: "It left." }])
      yield* guide("support-bot", env)
      const [name, counted, stored] = JSON.parse(yield* firstLine("use-count", {}))
      assert.strictEqual(name, "count")
      assert.isAbove(stored.events, 0)
      assert.deepStrictEqual(counted, stored)
    })
  )

  it.scoped("PA-9: a client without Effect asks a server, and another allows the call that waits", () =>
    Effect.gen(function* () {
      const { env, model } = yield* scripted(
        [{ tool: "write", input: { path: "a.txt", content: "one\n" } }],
        [{ text: "It is written." }]
      )
      const place = mkdtempSync(join(folder, "service-"))
      const own = { ...env, HOME: place, XDG_DATA_HOME: place, DAYBOOK_DB: join(place, "data.sqlite") }
      const daybook = (...words: ReadonlyArray<string>) =>
        [process.execPath, join(root, "packages", "cli", "bin", "daybook.js"), ...words] as const
      const server = yield* serving(daybook("serve", "--http", "127.0.0.1:0"), own)
      const token = yield* Effect.promise(() =>
        run(folder, "env", ...settings(own), ...daybook("token", "--scope", "admin"))
      )
      const used = { SERVER: server, DAYBOOK_TOKEN: token.trim() }
      assert.strictEqual(yield* guide("use-service", used), "It is written.\n")
      assert.include(JSON.stringify(model.received[1]?.body), "a.txt")
    })
  )

  it.scoped("PA-9: after a crash, a waiting prompt runs", () =>
    Effect.gen(function* () {
      const { env, model } = yield* scripted([{ text: "Yes." }])
      assert.strictEqual(yield* guide("use-recover", env), "0\n")
      assert.strictEqual(model.received.length, 1)
    })
  )

  it.scoped("PA-9: two models are asked ten times each", () =>
    Effect.gen(function* () {
      const { env } = yield* scripted(...Array.from({ length: 21 }, () => [{ text: "It is Monday." }]))
      assert.strictEqual(yield* guide("use-compare-models", env), "[10,10]\n")
    })
  )

  it.scoped("PA-9: a recorded session is the model of a test, which fails if the application asks something else", () =>
    Effect.gen(function* () {
      const { env } = yield* scripted([{ text: "It left the warehouse on Monday." }])
      yield* guide("use-test-your-agent", env)
      const vitest = join(root, "node_modules", "vitest", "vitest.mjs")
      const test = (text: string) => {
        writeFileSync(join(folder, "agent.test.ts"), text)
        return Effect.promise(() => run(folder, process.execPath, vitest, "run", "agent.test.ts"))
      }
      const text = readFileSync(join(folder, "test-your-agent.ts"), "utf8")
      assert.match(yield* test(text), /1 passed/)
      const failed = yield* Effect.flip(Effect.sandbox(test(text.replace("order 1042?", "order 1043?"))))
      assert.include(String(failed), "asks something else than was recorded")
    })
  )

  it.scoped("PA-9: a consumer sends a mail about each answer", () =>
    Effect.gen(function* () {
      const { env } = yield* scripted([{ text: "It left." }], [{ text: "Yes." }])
      // Both write to the same database.
      yield* guide("support-bot", env)
      yield* guide("use-recover", env)
      const mail = yield* firstLine("follow-the-log", {})
      assert.match(mail, /^mail \d+ about ses_/)
    })
  )

  it.scoped.each([
    [true, "was paid back"],
    [false, "A person refused this call."]
  ] as const)("PA-9: a call waits for the web page, which decides: allow is %s", ([allow, result]) =>
    Effect.gen(function* () {
      const { env, model } = yield* scripted([{ tool: "refund", input: { order: "1042" } }], [{ text: "So it is." }])
      const url = yield* serving([process.execPath, "permissions.js"], { ...env, PORT: "0" })
      yield* Effect.promise(async () => {
        assert.include(await (await fetch(url)).text(), "Permissions")
        const answer = fetch(`${url}/ask`, { method: "POST", body: "Please pay order 1042 back." })
        const over = new AbortController()
        void answer.finally(() => over.abort())
        // Each look is a round trip; the page looks again as well.
        let open: ReadonlyArray<{ readonly callID: string; readonly title: string }> = []
        while (open.length === 0) {
          over.signal.throwIfAborted()
          open = (await (await fetch(`${url}/permissions`)).json()) as typeof open
        }
        assert.strictEqual(open[0]?.title, "Pay money back")
        const decision = await fetch(`${url}/permissions/${open[0]?.callID}`, {
          method: "POST",
          body: JSON.stringify({ allow })
        })
        assert.strictEqual(decision.status, 204)
        assert.strictEqual(await (await answer).text(), "So it is.")
        assert.deepStrictEqual(await (await fetch(`${url}/permissions`)).json(), [])
      })
      assert.include(JSON.stringify(model.received[1]?.body), result)
    })
  )
})
