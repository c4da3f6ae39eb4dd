/** Errors that say what to do: wrong words, refused keys, folders that cannot be read, no model. */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { chmodSync, mkdirSync, readdirSync, statSync } from "node:fs"
import { createServer, type RequestListener } from "node:http"
import { dirname, join } from "node:path"
import { build } from "./support/Bundle.ts"
import { held } from "./support/Held.ts"
import { jsonLines, place } from "./support/Process.ts"

beforeAll(() => void build())

/** A server that answers as it is told, until the scope closes. */
const serving = Effect.fnUntraced(function* (answer: RequestListener) {
  const server = createServer(answer)
  yield* Effect.acquireRelease(
    Effect.async<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
    () =>
      Effect.sync(() => {
        server.closeAllConnections()
        server.close()
      })
  )
  const address = server.address()
  return `127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`
})

const listing = (ids: ReadonlyArray<string>): RequestListener => {
  return (_, response) => response.end(JSON.stringify({ object: "list", data: ids.map((id) => ({ id })) }))
}

describe("words", () => {
  it.scopedLive(
    "CL-760: where the session is missing, the refusal names the last one of the folder, and the whole line",
    () =>
      Effect.gen(function* () {
        const here = yield* place
        yield* here.run(["prompt", "--no-run", "--session", "nice", "Hi"])
        const lines = [
          ["fork", "SESSION"],
          ["rerun", "SESSION"],
          ["branch", "SESSION MESSAGE"]
        ] as const
        for (const [verb, words] of lines) {
          const { code, stderr } = yield* here.run([verb])
          assert.strictEqual(code, 2)
          const expected = `^daybook: ${verb} which session\\? the last one here is "nice" \\(ses_\\w+\\): daybook ${verb} ${words}\n$`
          assert.match(stderr, new RegExp(expected))
        }
      })
  )

  it.scopedLive("CL-3, CL-290: help of what is no command fails, and suggests the nearest one", () =>
    Effect.gen(function* () {
      const here = yield* place
      for (const [words, sentence] of [
        [["help", "nosuch"], 'daybook: there is no command "nosuch"; daybook --help lists them\n'],
        [["nosuch", "--help"], 'daybook: there is no command "nosuch"; daybook --help lists them\n'],
        [["help", "promt"], 'daybook: there is no command "promt"; did you mean prompt? daybook --help lists them\n'],
        [["sesions"], 'daybook: there is no command "sesions"; did you mean sessions? daybook --help lists them\n'],
        [["ls"], 'daybook: there is no command "ls"; did you mean sessions? daybook --help lists them\n'],
        [["run", "Hi"], 'daybook: there is no command "run"; did you mean prompt? daybook --help lists them\n'],
        [["-m", "a/b", "prompt", "Hi"], "daybook: options follow the command: daybook prompt --help lists them\n"],
        [["--json", "sessions"], "daybook: options follow the command: daybook sessions --help lists them\n"],
        [
          ["fix the bug"],
          'daybook: there is no command "fix the bug"; a prompt follows -p: daybook -p "fix the bug"\n'
        ],
        [["--help", "nosuch"], 'daybook: there is no command "nosuch"; daybook --help lists them\n'],
        [["--json", "--help"], 'daybook: there is no command "--json"; daybook --help lists them\n'],
        [["help", "prompt", "extra"], 'daybook: help prompt: unexpected argument "extra"\n'],
        [["help", "shell", "wacth"], 'daybook: there is no "shell wacth"; did you mean watch?\n'],
        [["help", "shell", "watch", "x"], 'daybook: help shell watch: unexpected argument "x"\n'],
        [["search", ""], "daybook: say what to search: daybook search WORDS; see daybook search --help\n"],
        [["--version", "extra"], 'daybook: --version: unexpected argument "extra"\n'],
        [["rename", "a"], "daybook: rename: TITLE is missing: daybook rename SESSION TITLE\n"],
        [["remove"], "daybook: remove which session? daybook sessions lists them\n"],
        [["sessions", "extra"], 'daybook: sessions: unexpected argument "extra"\n'],
        [["prompt", "--session", "a", "--session", "b", "Hi"], "daybook: --session is given twice\n"],
        [["prompt", "--no-run", "Hi", "--no-run"], "daybook: --no-run is given twice\n"]
      ] as const) {
        const { code, stderr, stdout } = yield* here.run(words)
        assert.deepStrictEqual([code, stdout, stderr], [2, "", sentence])
      }
      const action = (yield* here.run(["shell", "watch", "--help"])).stdout
      assert.match(action, /^daybook shell watch: /)
      assert.strictEqual((yield* here.run(["help", "shell", "watch"])).stdout, action)
      const help = yield* here.run(["help"])
      assert.strictEqual(help.code, 0)
      for (const name of ["DAYBOOK_BASE_URL", "DAYBOOK_API_KEY", "NO_COLOR", "OTEL_EXPORTER_OTLP_ENDPOINT"]) {
        assert.include(help.stdout, `  ${name}`)
      }
      const ctx = yield* here.ctx(["help", "hist"])
      assert.deepStrictEqual([ctx.code, ctx.stdout], [2, ""])
      assert.strictEqual(ctx.stderr, 'ctx: there is no command "hist"; did you mean history?; see ctx --help\n')
      for (const words of [
        ["help", "history", "extra"],
        ["--version", "extra"]
      ]) {
        const { code, stderr, stdout } = yield* here.ctx(words)
        assert.deepStrictEqual([code, stdout], [2, ""])
        assert.match(stderr, /^ctx: .*unexpected argument "extra"; see ctx --help\n$/)
      }
      for (const words of [
        ["trust", "grnat"],
        ["trust", "grnat", "."]
      ]) {
        const { code, stderr } = yield* here.run(words)
        assert.strictEqual(code, 2)
        assert.match(stderr, /; did you mean grant\?\n$/)
      }
      const events = yield* here.run(["help", "events"])
      assert.deepStrictEqual(yield* here.run(["--help", "events"]), events)
    })
  )
})

describe("models", () => {
  it.scopedLive("CL-132: a refused key is told with the variable that holds it", () =>
    Effect.gen(function* () {
      const { env, here, model } = yield* held
      const run = yield* here.start(["prompt", "Hi"], { env })
      yield* (yield* model.next).refuse(401, "bad key")
      const refused = yield* run.ended
      assert.strictEqual(refused.code, 5)
      assert.match(
        refused.stderr,
        /HTTP 401: bad key; set DAYBOOK_API_KEY \(of the server at DAYBOOK_BASE_URL\) [^\n]+\n$/
      )
      const address = yield* serving((_, response) => {
        response.writeHead(401, { "content-type": "application/json" })
        response.end(JSON.stringify({ error: { message: "no" } }))
      })
      const anthropic = yield* here.run(["prompt", "Hi"], {
        env: { ANTHROPIC_API_KEY: "x".repeat(20), ANTHROPIC_BASE_URL: `http://${address}` }
      })
      assert.match(anthropic.stderr, /HTTP 401: no; set ANTHROPIC_API_KEY to a key that it accepts\n$/)
    })
  )

  it.scopedLive("CL-132: a 404 names the address and the model that were asked, and what to check", () =>
    Effect.gen(function* () {
      const { env, here, model } = yield* held
      const asked = "/v1/chat/completions answered HTTP 404 to a request for the model held: no such model; "
      for (const words of [
        ["prompt", "--session", "fix", "Hi"],
        ["resume", "fix"]
      ]) {
        const run = yield* here.start(words, { env })
        yield* (yield* model.next).refuse(404, "no such model")
        const { code, stderr } = yield* run.ended
        assert.strictEqual(code, 5)
        assert.include(stderr, `${asked}choose a model that daybook models lists, and check DAYBOOK_BASE_URL\n`)
      }
    })
  )

  it.scopedLive("CL-131: where no model is chosen, those of the server are named, safely", () =>
    Effect.gen(function* () {
      const here = yield* place
      const address = yield* serving(listing(["one", "two\u001b[31m", ...Array.from({ length: 8 }, (_, i) => `m${i}`)]))
      const { code, stderr } = yield* here.run(["prompt", "Hi"], { env: { DAYBOOK_BASE_URL: `http://${address}/v1` } })
      assert.strictEqual(code, 5)
      assert.match(
        stderr,
        /^daybook: no model is selected: name one with --model, [^\n]*; it offers openai-compatible\/one, openai-compatible\/two␛\[31m, [^\n]*, and 2 more \(daybook models\)\n$/
      )
    })
  )

  it.scopedLive(
    "CL-131: a model's name without its provider, and a provider without a model, are refused with a model",
    () =>
      Effect.gen(function* () {
        const here = yield* place
        const address = yield* serving(listing(["one", "qwen/two"]))
        const env = { DAYBOOK_BASE_URL: `http://${address}/v1` }
        for (const [typed, meant] of [
          ["two", "qwen/two"],
          ["openai-compatible", "one"]
        ]) {
          const { code, stderr } = yield* here.run(["prompt", "--model", `${typed}`, "Hi"], { env })
          const said = `"${typed}" does not name a model: it has no slash; did you mean openai-compatible/${meant}?`
          assert.deepStrictEqual([code, stderr], [2, `daybook: ${said}\n`])
        }
      })
  )
})

describe("folders", () => {
  it.scopedLive("CL-9: prompt names the folder that it may not read, and makes nothing", () =>
    Effect.gen(function* () {
      const here = yield* place
      const closed = join(here.root, "closed")
      mkdirSync(closed)
      chmodSync(here.root, 0o755)
      const data = join(here.root, "data")
      mkdirSync(data)
      chmodSync(data, 0o777)
      // root may read everything.
      const options = process.getuid?.() === 0 ? { uid: 65_534 } : {}
      const made = yield* here.run(["prompt", "--session", "fix", "--cwd", closed, "--no-run", "Hi"], options)
      assert.strictEqual(made.code, 0, made.stderr)
      chmodSync(closed, 0o000)
      for (const [words, what] of [
        [["prompt", "--cwd", closed, "Hi"], "--cwd"],
        [["prompt", "--session", "fix", "Hi"], "the folder of ses_\\w+"],
        [["resume", "fix"], "the folder of ses_\\w+"]
      ] as const) {
        const { code, stderr } = yield* here.run(words, options)
        assert.strictEqual(code, 2, stderr)
        assert.match(stderr, new RegExp(`^daybook: ${what}: ${closed} cannot be entered \\(EACCES\\); [^\\n]+\\n$`))
      }
      chmodSync(closed, 0o755)
      assert.lengthOf(jsonLines((yield* here.run(["sessions", "--json"], options)).stdout), 1)
    })
  )

  it.scopedLive(
    "ST-17: doctor names what is read-only of a database that this user cannot write, and leaves nothing",
    () =>
      Effect.gen(function* () {
        const here = yield* place
        const options = process.getuid?.() === 0 ? { uid: 65_534 } : {}
        chmodSync(here.root, 0o777)
        const folder = join(here.root, "kept")
        const file = join(folder, "d.sqlite")
        const env = { DAYBOOK_DB: file }
        mkdirSync(folder)
        chmodSync(folder, 0o777)
        yield* here.run(["prompt", "--session", "fix", "--no-run", "Hi"], { ...options, env })
        const modes = { [file]: 0o644, [folder]: 0o777 }
        for (const [path, mode] of Object.entries(modes)) {
          const before = readdirSync(folder)
          chmodSync(path, 0o555)
          const { code, stderr, stdout } = yield* here.run(["doctor", "--json"], { ...options, env })
          assert.strictEqual(code, 6, stderr)
          const [found, ...others] = jsonLines(stdout).filter(({ verdict }) => verdict === "error")
          assert.deepInclude(found, { about: "database", says: stderr.slice("daybook: ".length, -1) })
          assert.isEmpty(others)
          assert.include(stderr, `the database cannot be written: ${path} is read-only for this user; make it writable`)
          assert.deepStrictEqual(readdirSync(folder), before)
          chmodSync(path, mode)
        }
        const { code, stderr } = yield* here.run(["sessions"], { ...options, env })
        assert.strictEqual(code, 0, stderr)
      })
  )

  it.scopedLive(
    "ST-21: doctor warns of a database and folders that others may read, and --fix leaves them to their owner",
    () =>
      Effect.gen(function* () {
        const here = yield* place
        yield* here.run(["prompt", "--session", "fix", "--no-run", "Hi"])
        chmodSync(here.database, 0o644)
        const outputs = join(dirname(here.database), "tool-output")
        mkdirSync(outputs, { recursive: true })
        chmodSync(outputs, 0o755)
        const { stdout: found } = yield* here.run(["doctor"])
        assert.include(found, `${here.database} has mode 0644: other users may access it`)
        assert.include(found, `${outputs} has mode 0755: other users may access it`)
        const { code, stdout } = yield* here.run(["doctor", "--fix"])
        assert.strictEqual(code, 0)
        assert.strictEqual(statSync(outputs).mode & 0o777, 0o700)
        assert.include(stdout, "had mode 0644; now only you may access it")
        assert.strictEqual(statSync(here.database).mode & 0o777, 0o600)
        assert.notInclude((yield* here.run(["doctor"])).stdout, "has mode")
      })
  )

  it.scopedLive(
    "LG-28: events prints what stands before an event that was changed by other hands, then says which",
    () =>
      Effect.gen(function* () {
        const here = yield* place
        yield* here.run(["prompt", "--session", "fix", "--no-run", "One"])
        yield* here.run(["prompt", "--session", "fix", "--no-run", "Two"])
        yield* here.sql("UPDATE event SET data = replace(data, 'Two', 'Tvo')")
        const { code, stderr, stdout } = yield* here.run(["events", "fix", "--json"])
        assert.deepStrictEqual([code, jsonLines(stdout).length], [6, 2])
        assert.match(stderr, /^daybook: event 2 of ses_\w+ .*checksum differs/)
      })
  )
})
