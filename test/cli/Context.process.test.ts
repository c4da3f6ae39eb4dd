/**
 * What `daybook context` shows, against what a model on the loopback is sent, and the configuration that is in it.
 * Method: the wire's texts are compared with the command's; nothing is timed.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { placesOf } from "../../packages/cli/src/config/Configuration.ts"
import { rehearse } from "../../packages/cli/src/host/Checkup.ts"
import { build } from "./support/Bundle.ts"
import { held } from "./support/Held.ts"
import * as ModelServer from "./support/ModelServer.ts"
import { jsonLines, type Place, place } from "./support/Process.ts"
import { lacks } from "../support/Parts.ts"

beforeAll(() => void build())

/** Writes a file below the user's folder. */
const configure = (here: Place, name: string, text: string) => {
  const file = join(here.root, ".config", "daybook", name)
  mkdirSync(join(file, ".."), { recursive: true })
  writeFileSync(file, text)
}

/** The texts of a value, wherever they are in it. */
const texts = (value: unknown): ReadonlyArray<string> =>
  typeof value === "string"
    ? [value]
    : typeof value === "object" && value !== null
      ? Object.values(value).flatMap(texts)
      : []

interface ShownJson {
  readonly system: ReadonlyArray<string>
  readonly tools: ReadonlyArray<{ readonly name: string }>
  readonly messages: ReadonlyArray<{ readonly role: string; readonly content: unknown }>
  readonly tokens: { readonly total: number }
}

const shownJson = (stdout: string): ShownJson => {
  const [line, ...more] = stdout.trimEnd().split("\n")
  assert.isEmpty(more)
  return JSON.parse(line ?? "")
}

/** Every system text, tool and text of the conversation went over the wire as it is shown, and no tool beside. */
const assertSent = ({ messages, system, tools }: ShownJson, body: ModelServer.Exchange["body"]) => {
  const sent = texts(body.messages).join("\n")
  for (const text of system) assert.include(sent, text)
  for (const { content } of messages) {
    const said = (Array.isArray(content) ? content : [content]).flatMap((part) =>
      typeof part === "string" ? [part] : [part.text ?? part.result ?? ""]
    )
    for (const text of said) assert.include(sent, text)
  }
  assert.deepStrictEqual(
    body.tools?.map((tool) => tool.function.name),
    tools.map(({ name }) => name)
  )
}

describe("daybook context", () => {
  it.scopedLive("CL-75: shows what an earlier turn was sent, and what the next one will be", () =>
    Effect.gen(function* () {
      const { env, here, model } = yield* held
      writeFileSync(join(here.cwd, "notes.txt"), "the contents\n  of it")
      writeFileSync(join(here.cwd, "AGENTS.md"), "Answer in verse.")
      assert.strictEqual((yield* here.run(["trust", "grant"])).code, 0)
      const run = yield* here.start(["prompt", "--session", "fix", "Read it"], { env })
      const first = yield* model.next
      yield* first.toolCall("call_1", "read", { path: "notes.txt" })
      yield* first.finish("tool_calls")
      const second = yield* model.next
      yield* second.text("Done.")
      yield* second.finish()
      assert.strictEqual((yield* run.ended).code, 0)
      const events = jsonLines((yield* here.run(["events", "fix", "--json"])).stdout)
      const steps = events.flatMap(({ seq, type }) => (type === "session.next.step.started" ? [String(seq)] : []))
      for (const [at, { body }] of [first, second].entries()) {
        const shown = yield* here.run(["context", "fix", "--at", steps[at] ?? "", "--json"])
        assertSent(shownJson(shown.stdout), body)
        assert.strictEqual(shownJson(shown.stdout).messages.length, at === 0 ? 1 : 3)
      }

      yield* here.run(["prompt", "--session", "fix", "--no-run", "And @notes.txt again?"], { env })
      const before = (yield* here.run(["events", "fix", "--json"])).stdout
      const next = yield* here.run(["context", "fix", "--json"], { env })
      assert.deepStrictEqual([next.code, next.stderr], [0, ""])
      assert.strictEqual((yield* here.run(["events", "fix", "--json"])).stdout, before, "nothing is written")
      const resumed = yield* here.start(["resume", "fix"], { env })
      const third = yield* model.next
      assertSent(shownJson(next.stdout), third.body)
      assert.include(JSON.stringify(shownJson(next.stdout).messages.at(-1)), "And @notes.txt again?")
      yield* third.text("Done.")
      yield* third.finish()
      assert.strictEqual((yield* resumed.ended).code, 0)

      const human = (yield* here.run(["context", "fix", "--at", "1000"])).stdout
      assert.include(human, "Answer in verse.")
      assert.include(human, "the contents")
      const table = (yield* here.run(["context", "fix", "--tokens"], { env })).stdout
      assert.match(table, /^ +\d+ {2}tool +read$/m)
      assert.match(table, /^ *[\d,]+ {2}total +[\d,]+ estimated/m)
    })
  )

  it.scopedLive("CL-76: an earlier turn needs the log alone; before the first one there is nothing", () =>
    Effect.gen(function* () {
      const { env, here, model } = yield* held
      const run = yield* here.start(["prompt", "--session", "fix", "Hi"], { env })
      const turn = yield* model.next
      yield* turn.text("Hello.")
      yield* turn.finish()
      yield* run.ended
      configure(here, "config.yaml", "nonsense: [")
      const refused = yield* here.run(["context", "fix"], { env })
      assert.strictEqual(refused.code, 2)
      assert.match(refused.stderr, /^daybook: the configuration \S+config\.yaml cannot be used: [^\n]+\n$/)
      const earlier = yield* here.run(["context", "fix", "--at=1000", "--json"])
      assertSent(shownJson(earlier.stdout), turn.body)
      const nothing = yield* here.run(["context", "fix", "--at", "1"])
      assert.strictEqual(nothing.code, 3)
      assert.match(nothing.stderr, /^daybook: ses_\S+ has no recorded request at or before event 1[^\n]*\n$/)
    })
  )

  it("CL-180, CL-135, CL-60: the file of the reading verbs holds no other verb, and neither YAML, MCP, the checks of schemas, files, sockets nor moving lines", () => {
    const folder = join(dirname(build().bin), "..", "dist", "bundle")
    const marks = [
      "YAMLParseError",
      "StdioClientTransport",
      "validateFormats",
      "ledger.sqlite",
      "allowHalfOpen",
      "Ctrl-C stops",
      "Removing a session does not remove it from earlier copies"
    ]
    const everything = readdirSync(folder)
      .filter((name) => name.endsWith(".js") && name !== "reader.js")
      .map((name) => readFileSync(join(folder, name), "latin1"))
      .join("")
    const reader = readFileSync(join(folder, "reader.js"), "latin1")
    for (const mark of marks) {
      assert.isTrue(everything.includes(mark), `${mark} marks what it should`)
      assert.isFalse(reader.includes(mark), mark)
    }
  })

  it.scopedLive("CL-34: a reader that has seen enough ends it quietly", () =>
    Effect.gen(function* () {
      const { env, here, model } = yield* held
      const text = "a line of many\n".repeat(20_000)
      const run = yield* here.start(["prompt", "--session", "fix"], { env, input: text })
      const turn = yield* model.next
      yield* turn.text("Hello.")
      yield* turn.finish()
      yield* run.ended
      const context = yield* here.startAlone(["context", "fix", "--at", "1000"], { env })
      yield* context.until("stdout", (printed) => printed.includes("session"))
      yield* context.closeStdout
      const ended = yield* context.ended
      assert.deepStrictEqual([ended.code, ended.stderr], [0, ""])
    })
  )
})

describe("configuration", () => {
  it("CL-70: the file is the named one, else in the user's folder, which is where it is whatever the file", () => {
    const file = (env: Record<string, string>) => placesOf(env, "/home/a", "/work").file
    assert.strictEqual(file({}), "/home/a/.config/daybook/config.yaml")
    assert.strictEqual(file({ XDG_CONFIG_HOME: "/etc/a" }), "/etc/a/daybook/config.yaml")
    assert.strictEqual(file({ XDG_CONFIG_HOME: "relative", DAYBOOK_CONFIG: "" }), "/home/a/.config/daybook/config.yaml")
    assert.strictEqual(file({ DAYBOOK_CONFIG: "x.yaml" }), "/work/x.yaml")
    assert.strictEqual(placesOf({ DAYBOOK_CONFIG: "/x.yaml" }, "/home/a", "/").userFolder, "/home/a/.config/daybook")
  })

  it.scopedLive("CL-70: agents, instructions and their settings come from the user's file and folder", () =>
    Effect.gen(function* () {
      const { env, here, model } = yield* held
      configure(
        here,
        "config.yaml",
        "agents:\n  poet:\n    description: Rhymes\n    prompt: You rhyme.\n    settings: {temperature: 0.25, headers: {x-key: hush}}\n" +
          "instructions: [house.md]\n"
      )
      configure(here, "AGENTS.md", "Never shout.")
      configure(here, "agents/bad.md", "---\nmode: nope\n---\nhi")
      writeFileSync(join(here.cwd, "house.md"), "Mind the cat.")
      const run = yield* here.start(["prompt", "--agent", "poet", "Hi"], { env })
      const turn = yield* model.next
      const sent = texts(turn.body.messages).join("\n")
      for (const text of ["You rhyme.", "Never shout.", "Mind the cat."]) assert.include(sent, text)
      assert.propertyVal(turn.body, "temperature", 0.25)
      yield* turn.text("Hello.")
      yield* turn.finish()
      assert.strictEqual((yield* run.ended).code, 0)
      assert.notInclude((yield* here.run(["context", "--json"], { env })).stdout, "hush")

      const agents = yield* here.run(["agents"])
      assert.match(agents.stdout, /^build .*\nplan .*\npoet +all +- +process +Rhymes\n$/)
      assert.match(agents.stderr, /^\S+bad\.md: [^\n]+\n$/)
      const json = (yield* here.run(["agents", "--json"])).stdout
      assert.notInclude(json, "hush")
      assert.include(json, '"headers":["x-key"]')
    })
  )

  it.scopedLive(
    "CL-71: a file that cannot be used is refused before a database is made, and only by what needs it",
    () =>
      Effect.gen(function* () {
        const here = yield* place
        const missing = yield* here.run(["prompt", "hi"], { env: { DAYBOOK_CONFIG: "missing.yaml" } })
        assert.strictEqual(missing.code, 2)
        assert.match(missing.stderr, /^daybook: DAYBOOK_CONFIG: \S.*missing\.yaml cannot be read \(ENOENT\)\n$/)
        configure(here, "config.yaml", "budget: {cots: 1}\nagents: {x: {mode: 7}}")
        const refused = yield* here.run(["prompt", "hi"])
        assert.strictEqual(refused.code, 2)
        assert.match(refused.stderr, /^daybook: [^\n]*budget\.cots[^\n]*"cost"[^\n]*agents\.x\.mode[^\n]*\n$/)
        assert.isFalse(existsSync(here.database))
        writeFileSync(join(here.root, "none.yaml"), "")
        const elsewhere = { DAYBOOK_CONFIG: join(here.root, "none.yaml") }
        yield* here.run(["prompt", "--session", "fix", "--no-run", "hi"], { env: elsewhere })
        for (const words of [
          ["rename", "fix", "fixed"],
          ["interrupt", "fixed"],
          ["answer", "fixed"],
          ["show", "fixed"]
        ]) {
          assert.deepStrictEqual([words, (yield* here.run(words)).code], [words, 0])
        }
      })
  )

  it.scopedLive("CL-93: doctor names every fault of the configuration, and what a prompt would come upon", () =>
    Effect.gen(function* () {
      const here = yield* place
      configure(here, "config.yaml", "budget: {cots: 1}\nagents: {x: {mode: 7}}")
      const faults = yield* here.run(["doctor", "--json"])
      assert.strictEqual(faults.code, 2)
      const errors = jsonLines(faults.stdout).filter(({ verdict }) => verdict === "error")
      assert.isAtLeast(errors.length, 2)
      assert.include(JSON.stringify(errors), "budget.cots")
      assert.include(JSON.stringify(errors), "agents.x.mode")

      const server = join(process.cwd(), "node_modules/@modelcontextprotocol/server-everything/dist/index.js")
      configure(
        here,
        "config.yaml",
        `mcp:\n  every: {command: ${JSON.stringify(process.execPath)}, args: [${JSON.stringify(server)}]}\n  none: {command: /not/there}\n`
      )
      configure(here, "agents/bad.md", "---\nmode: nope\n---\nhi")
      configure(here, "templates/bad.md", "---\nx: [\n---\nhi")
      mkdirSync(join(here.cwd, ".daybook", "skills", "bad"), { recursive: true })
      writeFileSync(join(here.cwd, ".daybook", "skills", "bad", "SKILL.md"), "no head")
      assert.strictEqual((yield* here.run(["trust", "grant"])).code, 0)
      const quiet = yield* here.run(["doctor"])
      assert.deepStrictEqual([quiet.code, quiet.stderr], [0, ""])
      for (const file of ["agents/bad.md", "templates/bad.md", "bad/SKILL.md"]) {
        assert.match(quiet.stdout, new RegExp(`^warning .*${file}`, "m"))
      }
      assert.match(quiet.stdout, /^ok +mcp +every, none: not started/m)
      assert.isFalse(existsSync(here.database))
      const asked = yield* here.run(["doctor", "--mcp"])
      assert.strictEqual(asked.code, 2)
      assert.match(asked.stdout, /^(?:ok|warning) +mcp every +connected, \d+ tools/m)
      assert.match(asked.stdout, /^error +mcp none +failed: .*\/not\/there/m)
    })
  )

  it.scopedLive("CL-93: the prompt that doctor assembles has the tools of a prompt", () =>
    Effect.gen(function* () {
      const here = yield* place
      yield* here.run(["prompt", "--no-run", "hi"])
      const { stdout: request } = yield* here.run(["context"])
      const { stdout } = yield* here.run(["doctor"])
      assert.include(stdout, ` ${request.split("\n## tool ").length - 1} tools`)
    })
  )

  it.scopedLive.skipIf(lacks("bubblewrap"))("SB-11: doctor says whether a sandbox can be made", () =>
    Effect.gen(function* () {
      const here = yield* place
      configure(here, "config.yaml", "sandbox: {mode: on}")
      const fine = yield* here.run(["doctor"])
      assert.strictEqual(fine.code, 0)
      assert.match(fine.stdout, /^ok +sandbox +\/.*bwrap can create sandboxes/m)
      const settings = { userFolder: here.cwd, sandbox: { mode: "on", program: "/nowhere/bwrap" } } as const
      const missing = yield* rehearse(here.cwd, settings, false)
      const check = missing.find(({ about }) => about === "sandbox")
      assert.strictEqual(check?.verdict, "error")
      assert.include(check?.says, "apt-get install bubblewrap")
    })
  )
})
