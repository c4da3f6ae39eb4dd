/** Verbs over a server, beside the same verbs on the database of another place in the same state. */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { build } from "./support/Bundle.ts"
import * as ModelServer from "./support/ModelServer.ts"
import { type Ended, jsonLines, type Place, place } from "./support/Process.ts"
import { serveAt } from "./support/RemoteServer.ts"

beforeAll(() => void build())

type Words = ReadonlyArray<string>

/** A place with a server, and the words that name it. */
const served = Effect.fnUntraced(function* (env: Readonly<Record<string, string>>) {
  const here = yield* place
  return { here, words: yield* serveAt(here, env) }
})

/** What a command printed, with ids by their order, and without folders and times. */
const plain = ({ root }: Place, { code, stderr, stdout }: Ended) => {
  const ids = new Map<string, string>()
  const named = (id: string) => {
    const name = ids.get(id) ?? `id ${ids.size}`
    ids.set(id, name)
    return name
  }
  const cleaned = (text: string) =>
    text
      .replaceAll(root, "ROOT")
      // A server has said it where it began.
      .replace(/^no language model is configured.*\n/, "")
      .replaceAll(/\b(?:act|ses|msg|evt)_(?!known)\w+/g, named)
      .replaceAll(/(?<="frame":")[^"]*/g, "FRAME")
      .replaceAll(/\b1\d{12}\b/g, "TIME")
      .replaceAll(/\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?Z?)?/g, "TIME")
  return { code, stdout: cleaned(stdout), stderr: cleaned(stderr) }
}

/** A server's models get the tool `question` (CL-480), and with this those of a command do, too. */
const asking = { DAYBOOK_QUESTIONS: "1" }

/** Two places without a session; `same` runs a verb in both, and compares what it prints. */
const both = Effect.gen(function* () {
  const local = yield* place
  const remote = yield* served({})
  const same = Effect.fnUntraced(function* (...words: Words) {
    const one = plain(local, yield* local.run(words, { env: asking }))
    const other = plain(remote.here, yield* remote.here.run([...remote.words, ...words]))
    assert.deepStrictEqual(other, one, words.join(" "))
    return one
  })
  /** As `same`, and it succeeds. */
  const well = (...words: Words) =>
    Effect.tap(same(...words), ({ code, stderr }) => assert.strictEqual(code, 0, `${words.join(" ")}: ${stderr}`))
  return { local, remote, same, well }
})

const prompted = (id: string, text: string) => ["prompt", "--session", "fix", "--id", `msg_known${id}`, text]

describe("--server", () => {
  it.scopedLive(
    "CL-303: branch, fork and undo do over a server what they do on its database",
    () =>
      Effect.gen(function* () {
        const { same, well } = yield* both
        yield* well(...prompted("1", "say one"))
        yield* well(...prompted("2", "say two"))
        yield* well("label", "fix", "msg_known2", "second")
        const copied = yield* well("fork", "fix", "second", "--title", "other")
        assert.match(copied.stdout, /^id 0\n$/)
        const branched = yield* well("branch", "fix", "second", "--json")
        assert.include(branched.stdout, "say two")
        yield* same("branch", "fix", "second")
        yield* well(...prompted("3", "say three"))
        yield* well("tree", "fix")
        yield* well("undo", "fix", "--dry-run")
        const undone = yield* well("undo", "fix")
        assert.strictEqual(undone.stdout, "say three\n")
        yield* well("undo", "fix", "--redo", "--json")
        yield* well("undo", "fix", "--json")
        yield* well("undo", "fix", "--redo")
        assert.strictEqual((yield* same("undo", "fix", "--redo")).code, 3)
        assert.strictEqual((yield* same("branch", "fix", "nowhere")).code, 3)
        yield* well("messages", "fix")
      }),
    120_000
  )

  it.scopedLive("CL-303: budget shows and limits over a server what it does on its database", () =>
    Effect.gen(function* () {
      const { well } = yield* both
      yield* well(...prompted("1", "say one"))
      yield* well("budget", "fix")
      const limited = yield* well("budget", "fix", "--tokens", "1000000")
      assert.include(limited.stdout, "1,000,000")
      yield* well("budget", "fix", "--json")
      yield* well("budget", "fix", "--none")
    })
  )

  it.scopedLive("CL-303: switch changes over a server what it changes on its database", () =>
    Effect.gen(function* () {
      const { remote, same, well } = yield* both
      yield* well(...prompted("1", "say one"))
      yield* well("switch", "fix", "--agent", "plan")
      yield* well("switch", "fix", "--model", "offline/scribe")
      assert.strictEqual((yield* same("switch", "fix")).code, 2)
      for (const [words, says] of [
        [["--agent", "nobody"], 'there is no agent "nobody"'],
        [["--model", "nowhere/nothing"], "nowhere"]
      ] as const) {
        const unknown = yield* remote.here.run([...remote.words, "switch", "fix", ...words])
        assert.deepStrictEqual([unknown.code, unknown.stdout], [2, ""])
        assert.include(unknown.stderr, says)
      }
      yield* well("show", "fix")
    })
  )

  it.scopedLive("CL-303: budget and context show over a server its configured budget and the window of its model", () =>
    Effect.gen(function* () {
      const here = yield* place
      const config = join(here.root, ".config", "daybook")
      mkdirSync(config, { recursive: true })
      writeFileSync(join(config, "config.yaml"), "budget:\n  tokens: 123456\n")
      // The key is not used: nothing is sent to the provider.
      const env = { ANTHROPIC_API_KEY: "unused", ...asking }
      const words = yield* serveAt(here, env)
      const model = ["--model", "anthropic/claude-sonnet-5-5"]
      yield* here.run([...words, "prompt", "--no-run", "--session", "fix", ...model, "say one"], { env })
      const shown = Effect.fnUntraced(function* (...given: ReadonlyArray<string>) {
        const [local, remote] = [yield* here.run(given, { env }), yield* here.run([...words, ...given])]
        assert.deepStrictEqual(remote, local, given.join(" "))
        return remote.stdout
      })
      assert.include(yield* shown("budget", "fix"), "123,456")
      assert.include(yield* shown("budget", "fix", "--json"), '"from":"configuration"')
      assert.match(yield* shown("context", "fix", "--tokens"), /left of the model's [\d,]+/)
    })
  )

  it.scopedLive("CL-303: context shows over a server the request that its database has", () =>
    Effect.gen(function* () {
      const { local, well } = yield* both
      yield* well(...prompted("1", "say one"))
      const events = jsonLines((yield* local.run(["events", "fix", "--json"])).stdout)
      const step = events.find(({ type }) => type === "session.next.step.started")
      yield* well("context", "fix", "--at", String(step?.["seq"]), "--json")
      yield* well("context", "fix", "--at", String(step?.["seq"]), "--tokens")
      const next = yield* well("context", "fix", "--json")
      assert.include(next.stdout, "say one")
    })
  )

  it.scopedLive("CL-303: continue takes over a server the session that it takes on its database", () =>
    Effect.gen(function* () {
      const { well } = yield* both
      yield* well(...prompted("1", "say one"))
      const shown = yield* well("continue", "--json")
      assert.include(shown.stdout, '"title":"fix"')
      yield* well("continue", "say two")
      assert.include((yield* well("messages", "fix")).stdout, "say two")
    })
  )

  it.scopedLive("CL-303: answer lists and answers over a server what a model asks there", () =>
    Effect.gen(function* () {
      const model = yield* ModelServer.make
      const env = { DAYBOOK_BASE_URL: model.url, DAYBOOK_MODEL: "openai-compatible/held" }
      const { here, words } = yield* served(env)
      const run = yield* here.start([...words, "prompt", "--session", "fix", "Build it"], { env })
      const first = yield* model.next
      const question = { question: "Which store?", options: [{ label: "SQLite" }, { label: "Plain files" }] }
      yield* first.toolCall("call_1", "question", { questions: [question] })
      yield* first.finish("tool_calls")
      yield* run.until("stderr", (text) => text.includes("→ question"))
      for (const given of [
        ["answer", "fix"],
        ["answer", "fix", "--json"]
      ]) {
        const [local, remote] = [yield* here.run(given), yield* here.run([...words, ...given])]
        assert.deepStrictEqual(remote, local)
        assert.include(remote.stdout, "call_1")
      }
      assert.strictEqual((yield* here.run([...words, "answer", "fix", "2"])).code, 0)
      const second = yield* model.next
      assert.include(JSON.stringify(second.body.messages), "Plain files")
      yield* second.text("Files it is.")
      yield* second.finish()
      assert.deepStrictEqual([(yield* run.ended).code, (yield* run.ended).stdout], [0, "Files it is.\n"])
      assert.strictEqual((yield* here.run([...words, "answer", "fix", "1"])).code, 3)
    })
  )

  it.scopedLive("CL-481: at a terminal, what the session asks on its server is asked there", () =>
    Effect.gen(function* () {
      const model = yield* ModelServer.make
      const env = { DAYBOOK_BASE_URL: model.url, DAYBOOK_MODEL: "openai-compatible/held" }
      const { here, words } = yield* served(env)
      const run = yield* here.start([...words, "prompt", "Build it"], { env, terminal: { columns: 80, rows: 24 } })
      const first = yield* model.next
      yield* first.toolCall("call_1", "question", { questions: [{ question: "Which store?" }] })
      yield* first.finish("tool_calls")
      yield* run.until("stdout", (text) => text.includes("answer: "))
      yield* run.type("Plain files\n")
      const second = yield* model.next
      assert.include(JSON.stringify(second.body.messages), "Plain files")
      yield* second.text("Files it is.")
      yield* second.finish()
      const { code, stdout } = yield* run.ended
      assert.strictEqual(code, 0, stdout)
      assert.include(stdout, "Files it is.")
    })
  )
})
