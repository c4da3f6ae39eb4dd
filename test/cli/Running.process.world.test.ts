/**
 * What a running session is told from outside: summaries, budgets, answers, and what a prompt has beside its text.
 * Method: a model on the loopback answers when the test lets it; nothing is timed.
 */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { build } from "./support/Bundle.ts"
import { held } from "./support/Held.ts"
import { jsonLines, place, type Running } from "./support/Process.ts"

beforeAll(() => void build())

const setup = Effect.gen(function* () {
  const { env, here, model } = yield* held
  const say = Effect.fnUntraced(function* (text: string) {
    const turn = yield* model.next
    yield* turn.text(text)
    yield* turn.finish()
    return turn
  })
  const finished = (run: Running, text: string) => Effect.zipRight(say(text), run.ended)
  return { model, here, env, say, finished }
})

const question = {
  questions: [{ question: "Which store?", options: [{ label: "SQLite" }, { label: "Plain files" }] }]
}

describe("daybook compact", () => {
  it.scopedLive("CL-88: says why nothing was summarized, and exits 1", () =>
    Effect.gen(function* () {
      const { env, finished, here } = yield* setup
      yield* finished(yield* here.start(["prompt", "--session", "fix", "One"], { env }), "First.")
      const nothing = yield* here.run(["compact", "fix"], { env })
      assert.deepStrictEqual([nothing.code, nothing.stdout], [1, ""])
      assert.match(nothing.stderr, /^daybook: nothing of ses_\S+ was summarized: [^\n]+\n$/)
    })
  )

  for (const waiting of [false, true]) {
    it.scopedLive(
      `CL-88: a limit that is reached is the reason, ${waiting ? "with" : "without"} a prompt that waits`,
      () =>
        Effect.gen(function* () {
          const { env, finished, here } = yield* setup
          yield* finished(yield* here.start(["prompt", "--session", "fix", "One"], { env }), "First.")
          yield* here.run(["budget", "fix", "--tokens", "5"])
          if (waiting) yield* here.run(["prompt", "--session", "fix", "--no-run", "Two"], { env })
          const stopped = yield* here.run(["compact", "fix"], { env })
          assert.deepStrictEqual([stopped.code, stopped.stdout], [12, ""])
          assert.match(
            stopped.stderr,
            /^daybook: nothing of ses_\S+ was summarized: ses_\S+ and its children spent 5 tokens of their budget of 5 tokens[^\n]*\n$/
          )
        })
    )
  }

  it.scopedLive("CL-88: waits, and says how large the request was and the summary is", () =>
    Effect.gen(function* () {
      const { env, finished, here, say } = yield* setup
      mkdirSync(join(here.root, ".config", "daybook"), { recursive: true })
      writeFileSync(join(here.root, ".config", "daybook", "config.yaml"), "compaction: {keep_recent_tokens: 1}")
      const prompt = (text: string) => here.start(["prompt", "--session", "fix", text], { env })
      yield* finished(yield* prompt("One"), "First.")
      yield* finished(yield* prompt("Two"), "Second.")
      const run = yield* here.start(["compact", "fix"], { env })
      // The model is asked again for the headings that are missing, and what there is of a summary counts.
      const asked = yield* say("## Goal\n\nTo count.")
      assert.include(JSON.stringify(asked.body.messages), "One")
      yield* say("## Goal\n\nTo count.")
      const ended = yield* run.ended
      assert.match(ended.stdout, /^summarized: the request had \d+ tokens, the summary has \d+ characters\n$/)
      assert.deepStrictEqual([ended.code, ended.stderr], [0, ""])
      assert.match((yield* here.run(["show", "fix"])).stdout, /^## summary \(manual\)[^]*To count\./m)
      const next = JSON.parse((yield* here.run(["context", "fix", "--json"], { env })).stdout)
      assert.include(JSON.stringify(next.messages), "To count.")
      assert.isBelow(next.messages.length, 4)
    })
  )

  it.scopedLive(
    "CL-179, CL-88: says what was summarized also where a prompt that waited fails after it, and then why",
    () =>
      Effect.gen(function* () {
        const { env, finished, here, model, say } = yield* setup
        mkdirSync(join(here.root, ".config", "daybook"), { recursive: true })
        writeFileSync(join(here.root, ".config", "daybook", "config.yaml"), "compaction: {keep_recent_tokens: 1}")
        const prompt = (text: string) => here.start(["prompt", "--session", "fix", text], { env })
        yield* finished(yield* prompt("One"), "First.")
        yield* finished(yield* prompt("Two"), "Second.")
        yield* here.run(["prompt", "--session", "fix", "--no-run", "Three"], { env })
        const run = yield* here.start(["compact", "fix"], { env })
        yield* say("## Goal\n\nTo count.")
        yield* say("## Goal\n\nTo count.")
        yield* (yield* model.next).refuse(400, "no more today")
        const ended = yield* run.ended
        assert.match(ended.stdout, /^summarized: the request had \d+ tokens, the summary has \d+ characters\n$/)
        assert.strictEqual(ended.code, 5)
        assert.match(ended.stderr, /^daybook: [^\n]*no more today[^\n]*\n$/)
      })
  )

  it.scopedLive("CL-89: --no-wait asks only: it is on disk, once, and no model is asked", () =>
    Effect.gen(function* () {
      const { env, finished, here } = yield* setup
      yield* finished(yield* here.start(["prompt", "--session", "fix", "One"], { env }), "First.")
      const twice = [yield* here.run(["compact", "fix", "--no-wait"]), yield* here.run(["compact", "--no-wait"])]
      for (const { code, stderr, stdout } of twice) {
        assert.deepStrictEqual([code, stdout], [0, ""])
        assert.match(stderr, /^ses_\S+ will be summarized when it runs next\n$/)
      }
      const events = (yield* here.run(["events", "fix"])).stdout
      assert.strictEqual(events.split("compaction.requested").length - 1, 1)
      assert.notInclude(events, "compaction.started")
      assert.match((yield* here.run(["show", "fix"])).stdout, /^compaction +requested$/m)
    })
  )
})

describe("daybook budget", () => {
  it.scopedLive("CL-90: shows what was spent; at its limit a session stops before the next request", () =>
    Effect.gen(function* () {
      const { env, finished, here } = yield* setup
      yield* finished(yield* here.start(["prompt", "--session", "fix", "One"], { env }), "First.")
      const spent = yield* here.run(["budget", "fix", "--tokens", "5"])
      assert.match(spent.stdout, /^with children +\$0\.0000 +5\nlimit +none +5\nleft +- +0\n$/m)
      const stopped = yield* here.run(["prompt", "--session", "fix", "Two"], { env })
      assert.strictEqual(stopped.code, 12)
      assert.match(
        stopped.stderr,
        /daybook: ses_\S+ and its children spent 5 tokens of their budget of 5 tokens[^\n]*\n$/
      )
      const kept = JSON.parse((yield* here.run(["budget", "fix", "--cost", "2.5", "--json"])).stdout)
      assert.deepStrictEqual(kept.limit, { budget: { cost: 2.5, tokens: 5 }, from: "session" })
      yield* here.run(["budget", "fix", "--none"])
      const resumed = yield* finished(yield* here.start(["resume", "fix"], { env }), "Second.")
      assert.deepStrictEqual([resumed.code, resumed.stdout], [0, "Second.\n"])
    })
  )

  it.scopedLive(
    "EX-B6: a limit of cost is refused where the model's price is not known, unless the configuration names it",
    () =>
      Effect.gen(function* () {
        const { env, here } = yield* setup
        yield* here.run(["prompt", "--session", "fix", "--no-run", "One"], { env })
        const refused = yield* here.run(["budget", "fix", "--cost", "1"], { env })
        assert.strictEqual(refused.code, 1)
        const [, model = ""] =
          /^daybook: \S+ has a budget in dollars, and the price of (\S+) is not known/.exec(refused.stderr) ?? []
        assert.include(refused.stderr, "prices")
        mkdirSync(join(here.root, ".config", "daybook"), { recursive: true })
        writeFileSync(
          join(here.root, ".config", "daybook", "config.yaml"),
          `prices: {"${model}": {input: 1, output: 2}}`
        )
        assert.strictEqual((yield* here.run(["budget", "fix", "--cost", "1"], { env })).code, 0)
      })
  )

  it.scopedLive("CL-91: a session without a limit has the configured one; --none takes that away as well", () =>
    Effect.gen(function* () {
      const here = yield* place
      mkdirSync(join(here.root, ".config", "daybook"), { recursive: true })
      writeFileSync(join(here.root, ".config", "daybook", "config.yaml"), "budget: {cost: 5}")
      yield* here.run(["prompt", "--session", "fix", "--no-run", "One"])
      assert.match((yield* here.run(["budget", "fix"])).stdout, /^limit \(configured\) +\$5\.0000 +none$/m)
      assert.match((yield* here.run(["budget", "fix", "--none"])).stdout, /^limit +none +none$/m)
      assert.strictEqual((yield* here.run(["budget", "fix", "--none", "--cost", "1"])).code, 2)
      assert.strictEqual((yield* here.run(["budget", "fix", "--cost", "-1"])).code, 2)
    })
  )
})

describe("questions", () => {
  it.scopedLive("CL-82: what the model asks is listed and answered from another process", () =>
    Effect.gen(function* () {
      const { env, here, model, say } = yield* setup
      const run = yield* here.start(["prompt", "--session", "fix", "Build it"], {
        env: { ...env, DAYBOOK_QUESTIONS: "1" }
      })
      const first = yield* model.next
      yield* first.toolCall("call_1", "question", question)
      yield* first.finish("tool_calls")
      yield* run.until("stderr", (text) => text.includes("→ question"))
      const listed = yield* here.run(["answer", "fix"])
      assert.match(listed.stdout, /call_1\nWhich store\?\n {2}\[1\] SQLite\n {2}\[2\] Plain files\n$/)
      assert.strictEqual(jsonLines((yield* here.run(["answer", "fix", "--json"])).stdout)[0]?.["callID"], "call_1")
      assert.strictEqual((yield* here.run(["answer", "fix", "--dismiss", "x"])).code, 2)
      assert.strictEqual((yield* here.run(["answer", "fix", "2"])).code, 0)
      const second = yield* say("Files it is.")
      assert.include(JSON.stringify(second.body.messages), "Plain files")
      assert.deepStrictEqual([(yield* run.ended).code, (yield* run.ended).stdout], [0, "Files it is.\n"])
      const late = yield* here.run(["answer", "fix", "1"])
      assert.strictEqual(late.code, 3)
      assert.match(late.stderr, /^daybook: ses_\S+ asks nothing\n$/)
    })
  )

  it.scopedLive("CL-83: a dismissed question stops the run; without anybody to answer, nothing is asked", () =>
    Effect.gen(function* () {
      const { env, here, model, say } = yield* setup
      const run = yield* here.start(["prompt", "--session", "fix", "Build it"], {
        env: { ...env, DAYBOOK_QUESTIONS: "1" }
      })
      const first = yield* model.next
      assert.include(JSON.stringify(first.body.tools), '"question"')
      yield* first.toolCall("call_1", "question", question)
      yield* first.finish("tool_calls")
      yield* run.until("stderr", (text) => text.includes("→ question"))
      assert.strictEqual((yield* here.run(["answer", "fix", "--dismiss"])).code, 0)
      assert.strictEqual((yield* run.ended).code, 130)
      const alone = yield* here.start(["prompt", "Build it"], { env })
      const turn = yield* say("Done.")
      assert.notInclude(JSON.stringify(turn.body.tools), '"question"')
      assert.strictEqual((yield* alone.ended).code, 0)
    })
  )
})

describe("daybook prompt", () => {
  it.scopedLive("CL-86: with --output-schema and --json stdout has events only, the value in one of them", () =>
    Effect.gen(function* () {
      const { env, here, model } = yield* setup
      writeFileSync(join(here.cwd, "form.json"), '{"type":"object","properties":{"title":{"type":"string"}}}')
      const run = yield* here.start(["prompt", "--json", "--output-schema", "form.json", "Sum up"], { env })
      const request = yield* model.next
      yield* request.toolCall("call_1", "structured_output", { title: "A day" })
      yield* request.finish("tool_calls")
      const { code, stdout } = yield* run.ended
      const lines = stdout.trimEnd().split("\n")
      assert.strictEqual(code, 0)
      for (const line of lines) assert.match(line, /"type":"/)
      assert.isTrue(lines.some((line) => line.includes('"title":"A day"')))
    })
  )

  it.scopedLive("CL-86: with --output-schema the value alone goes to stdout, and fits after one correction", () =>
    Effect.gen(function* () {
      const { env, here, model } = yield* setup
      const schema = { type: "object", properties: { title: { type: "string" } }, required: ["title"] }
      writeFileSync(join(here.cwd, "form.json"), JSON.stringify(schema))
      const run = yield* here.start(["prompt", "--output-schema", "form.json", "Sum up"], { env })
      const first = yield* model.next
      yield* first.text("Let me see.")
      yield* first.toolCall("call_1", "structured_output", { title: 7 })
      yield* first.finish("tool_calls")
      const second = yield* model.next
      yield* second.toolCall("call_2", "structured_output", { title: "A day" })
      yield* second.finish("tool_calls")
      const ended = yield* run.ended
      assert.deepStrictEqual([ended.code, ended.stdout], [0, '{"title":"A day"}\n'])
      assert.include(ended.stderr, "Let me see.")
      for (const [name, text] of [
        ["array.json", "[]"],
        ["broken.json", "{"]
      ] as const) {
        writeFileSync(join(here.cwd, name), text)
        const refused = yield* here.run(["prompt", "--output-schema", name, "x"], { env })
        assert.strictEqual(refused.code, 2)
        assert.match(refused.stderr, new RegExp(`^daybook: --output-schema: ${name} [^\\n]+\\n$`))
      }
    })
  )

  it.scopedLive("CL-84: files are attached, also from outside the session's folder, and named in the transcript", () =>
    Effect.gen(function* () {
      const { env, here, say } = yield* setup
      writeFileSync(join(here.cwd, "inside.txt"), "what is inside")
      writeFileSync(join(here.root, "outside.txt"), "what is outside")
      writeFileSync(join(here.root, "dot.png"), Buffer.from("iVBORw0KGgo=", "base64"))
      const words = ["prompt", "--session", "fix", "--attach", "inside.txt", "--attach=../outside.txt", "Look"]
      const run = yield* here.start([...words, "--attach", "../dot.png"], { env })
      const sent = JSON.stringify((yield* say("I see.")).body.messages)
      assert.include(sent, "what is inside")
      assert.include(sent, "what is outside")
      assert.strictEqual((yield* run.ended).code, 0)
      const shown = (yield* here.run(["show", "fix"])).stdout
      assert.match(shown, /^\[file\] inside\.txt \(14 B\)$/m)
      assert.match(shown, /^\[file\] outside\.txt \(15 B\)$/m)
      assert.notInclude(shown, "what is inside")
      assert.include((yield* here.run(["context", "fix", "--at", "1000"])).stdout, "what is outside")
      for (const bad of ["missing.txt", ".."]) {
        const refused = yield* here.run(["prompt", "--session", "other", "--attach", bad, "x"], { env })
        assert.strictEqual(refused.code, 2)
        assert.match(refused.stderr, /daybook: --attach: [^\n]+\n$/)
      }
      assert.strictEqual(jsonLines((yield* here.run(["sessions", "--json"])).stdout).length, 1)
    })
  )

  it.scopedLive("CL-85: tools and privileged text are for this prompt only", () =>
    Effect.gen(function* () {
      const { env, finished, here, say } = yield* setup
      const words = ["prompt", "--session", "fix", "--system", "Speak low."]
      const run = yield* here.start([...words, "--tools", "read=on", "--tools", "*=off", "--tools", "read=on", "Hi"], {
        env
      })
      const { body } = yield* say("Hello.")
      assert.deepStrictEqual(
        body.tools?.map((tool) => tool.function.name),
        ["read"]
      )
      assert.include(JSON.stringify(body.messages), "Speak low.")
      assert.strictEqual((yield* run.ended).code, 0)
      assert.match((yield* here.run(["show", "fix"])).stdout, /^\[tools\] \*=off read=on$/m)
      const next = yield* here.start(["prompt", "--session", "fix", "Again"], { env })
      assert.strictEqual((yield* finished(next, "Hello.")).code, 0)
      const last = JSON.parse((yield* here.run(["context", "fix", "--at", "1000", "--json"])).stdout)
      assert.isAbove(last.tools.length, 5)
      assert.strictEqual((yield* here.run(["prompt", "--tools", "read", "x"], { env })).code, 2)
    })
  )
})
