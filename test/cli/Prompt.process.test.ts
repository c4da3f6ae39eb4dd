/**
 * The bundled command as a process, with a model on the loopback that answers when the test lets it.
 * Method: nothing is timed; the test waits for what the process prints and for what the model is asked.
 */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { existsSync, mkdirSync, statSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { build } from "./support/Bundle.ts"
import { held } from "./support/Held.ts"
import { jsonLines, place } from "./support/Process.ts"

beforeAll(() => void build())

describe("daybook prompt", () => {
  it.scopedLive("CL-4: the answer streams to stdout as it comes, and everything about it goes to stderr", () =>
    Effect.gen(function* () {
      const { env, here, model } = yield* held
      const run = yield* here.start(["prompt", "Say hello"], { env })
      const turn = yield* model.next
      yield* turn.text("Hel")
      yield* run.until("stdout", (text) => text === "Hel")
      yield* turn.text("lo")
      yield* turn.finish()
      const ended = yield* run.ended
      assert.strictEqual(ended.stdout, "Hello\n")
      assert.match(ended.stderr, /^session ses_\S+ "Say hello" \(new\)\n$/)
      assert.strictEqual(ended.code, 0)
    })
  )

  it.scopedLive(
    "CL-542: an MCP server that does not start is mentioned once, also with --json, and the run goes on",
    () =>
      Effect.gen(function* () {
        const { env, here, model } = yield* held
        const folder = join(here.root, ".config", "daybook")
        mkdirSync(folder, { recursive: true })
        writeFileSync(join(folder, "config.yaml"), "mcp:\n  fs:\n    command: /not/there\n")
        for (const words of [[], ["--json"]]) {
          const run = yield* here.start(["prompt", ...words, "Look"], { env })
          const first = yield* model.next
          yield* first.toolCall("call_1", "glob", { pattern: "*" })
          yield* first.finish("tool_calls")
          const second = yield* model.next
          yield* second.text("Done")
          yield* second.finish()
          const { code, stderr } = yield* run.ended
          assert.strictEqual(code, 0)
          const said = stderr.split("\n").filter((line) => line.includes('MCP server "fs"'))
          assert.lengthOf(said, 1)
          assert.match(said[0] ?? "", /there is no command "\/not\/there"; the run goes on without its tools$/)
        }
      })
  )

  it.scopedLive("CL-7: a tool call is executed, told in a line, and its result goes back to the model", () =>
    Effect.gen(function* () {
      const { env, here, model } = yield* held
      writeFileSync(join(here.cwd, "with space\nand newline.txt"), "the contents")
      const run = yield* here.start(["prompt", "Read it"], { env })
      const first = yield* model.next
      yield* first.toolCall("call_1", "read", { path: "with space\nand newline.txt" })
      yield* first.finish("tool_calls")
      const second = yield* model.next
      assert.include(JSON.stringify(second.body.messages), "the contents")
      yield* second.text("Done.")
      yield* second.finish()
      const ended = yield* run.ended
      assert.strictEqual(ended.stdout, "Done.\n")
      assert.match(ended.stderr, /^→ read with space and newline\.txt\n✓ read with space and newline\.txt$/m)
      assert.strictEqual(ended.code, 0)
    })
  )

  it.scopedLive("CL-28: the offline model ends its turn on a binary, a missing and a large file alike", () =>
    Effect.gen(function* () {
      const here = yield* place
      writeFileSync(
        join(here.cwd, "noise.bin"),
        Uint8Array.from({ length: 1_000 }, (_, index) => (index * 37) % 256)
      )
      writeFileSync(join(here.cwd, "large.txt"), "a line of text\n".repeat(400_000))
      for (const file of ["noise.bin", "missing.txt", "large.txt"]) {
        const ended = yield* here.run(["prompt", `Read ${file}`])
        assert.strictEqual(ended.code, 0, ended.stderr)
        assert.include(ended.stdout, file)
        assert.strictEqual(ended.stderr.split("→ read").length, 2)
      }
    })
  )

  it.scopedLive("CL-38: Ctrl-C says the same of a resumed run", () =>
    Effect.gen(function* () {
      const { env, here, model } = yield* held
      yield* here.run(["prompt", "--session", "fix", "--no-run", "One"], { env })
      const run = yield* here.start(["resume", "fix"], { env })
      const turn = yield* model.next
      yield* turn.text("Half an ans")
      yield* run.until("stdout", (text) => text === "Half an ans")
      yield* run.signal("SIGINT")
      const ended = yield* run.ended
      assert.strictEqual(ended.code, 130)
      assert.match(ended.stderr, /daybook: stopped; what was written is kept. Go on: daybook continue, or [^\n]+\n$/)
    })
  )

  it.scopedLive("CL-38: the first Ctrl-C interrupts the turn, settles it, keeps the inbox and exits 130", () =>
    Effect.gen(function* () {
      const { env, here, model } = yield* held
      const run = yield* here.start(["prompt", "--session", "fix", "One"], { env })
      const turn = yield* model.next
      yield* turn.text("Half an ans")
      yield* run.until("stdout", (text) => text === "Half an ans")
      const queued = yield* here.run(["prompt", "--session", "fix", "--delivery", "queue", "--no-run", "Two"], { env })
      assert.strictEqual(queued.code, 0, queued.stderr)
      yield* run.signal("SIGINT")
      const ended = yield* run.ended
      assert.strictEqual(ended.code, 130)
      assert.strictEqual(ended.stdout, "Half an ans\n")
      assert.match(
        ended.stderr,
        /daybook: stopped; what was written is kept. Go on: daybook continue, or daybook resume ses_\S+\n$/
      )
      yield* turn.closed
      const events = jsonLines((yield* here.run(["events", "fix", "--json"])).stdout)
      const types = events.map((event) => event["type"])
      assert.strictEqual(types.at(-1), "session.next.activity.settled")
      assert.deepInclude(events.at(-1)?.["data"], { outcome: "interrupted" })
      const text = events.find((event) => event["type"] === "session.next.text.ended")
      assert.deepInclude(text?.["data"], { text: "Half an ans" })
      assert.include((yield* here.run(["show", "fix"])).stderr, "1 prompt waits in the inbox")
    })
  )

  it.scopedLive("CL-7, CL-38: the wait before a retry is told, and Ctrl-C ends it at once", () =>
    Effect.gen(function* () {
      const { env, here, model } = yield* held
      const run = yield* here.start(["prompt", "--session", "busy", "One"], { env })
      const first = yield* model.next
      yield* first.refuse(529, "Overloaded", { "retry-after": "600" })
      yield* run.until("stderr", (text) =>
        /^… the provider is overloaded \(HTTP 529\); next attempt in 10 min 00 s \(2 of \d+\): .*Overloaded$/m.test(
          text
        )
      )
      yield* run.signal("SIGINT")
      assert.strictEqual((yield* run.ended).code, 130)
      const events = jsonLines((yield* here.run(["events", "busy", "--json"])).stdout)
      assert.deepInclude(events.at(-1)?.["data"], { outcome: "interrupted" })
    })
  )

  it.scopedLive("CL-38: the second Ctrl-C leaves at once", () =>
    Effect.gen(function* () {
      const { env, here, model } = yield* held
      // Another process holds the write lock, so that the interruption cannot settle.
      const run = yield* here.start(["prompt", "--session", "fix", "One"], { env })
      const turn = yield* model.next
      yield* turn.text("Half")
      yield* run.until("stdout", (text) => text === "Half")
      const lock = yield* here.lock
      yield* run.signal("SIGINT")
      yield* turn.closed
      yield* run.signal("SIGINT")
      const ended = yield* run.ended
      yield* lock
      assert.strictEqual(ended.code, 130)
    })
  )

  it.scopedLive("CL-39: when the reader of stdout goes away, the turn is interrupted and nothing is said", () =>
    Effect.gen(function* () {
      const { env, here, model } = yield* held
      const run = yield* here.startAlone(["prompt", "--session", "fix", "One"], { env })
      const turn = yield* model.next
      yield* turn.text("first\n")
      yield* run.until("stdout", (text) => text === "first\n")
      yield* run.closeStdout
      yield* turn.text("second\n")
      const ended = yield* run.ended
      assert.strictEqual(ended.code, 130)
      assert.notInclude(ended.stderr, "EPIPE")
      assert.notInclude(ended.stderr, "daybook:")
    })
  )

  it.scopedLive("CL-26: --json prints the prompt's durable events until its activity has settled", () =>
    Effect.gen(function* () {
      const { env, here, model } = yield* held
      const run = yield* here.start(["prompt", "--json", "--id", "msg_mine", "Hi"], { env })
      const turn = yield* model.next
      yield* turn.text("Hello")
      yield* turn.finish()
      const ended = yield* run.ended
      const events = jsonLines(ended.stdout)
      assert.deepStrictEqual(Object.keys(events[0] ?? {}), [
        "position",
        "seq",
        "id",
        "type",
        "version",
        "sessionID",
        "created",
        "data"
      ])
      assert.strictEqual(events[0]?.["type"], "session.next.prompt.admitted")
      assert.strictEqual(events.at(-1)?.["type"], "session.next.activity.settled")
      const all = jsonLines((yield* here.run(["events", "--json"])).stdout)
      assert.deepStrictEqual(events, all.slice(1))
    })
  )

  it.scopedLive("CL-27: an exact repetition of a prompt with an id prints the same answer and asks nobody", () =>
    Effect.gen(function* () {
      const { env, here, model } = yield* held
      const words = ["prompt", "--session", "fix", "--id", "msg_mine", "Hi"]
      const run = yield* here.start(words, { env })
      const turn = yield* model.next
      yield* turn.text("Hello")
      yield* turn.finish()
      yield* run.ended
      const again = yield* here.run(words, { env })
      assert.deepStrictEqual([again.code, again.stdout], [0, "Hello\n"])
      const other = yield* here.run([...words.slice(0, -1), "Something else"], { env })
      assert.strictEqual(other.code, 4)
      // Its session is named only once a prompt is on disk.
      assert.match(other.stderr, /^daybook: msg_mine is taken[^\n]*\n$/)
    })
  )

  it.scopedLive("CL-40: a provider that refuses is one sentence and exit 5", () =>
    Effect.gen(function* () {
      const { env, here, model } = yield* held
      const run = yield* here.start(["prompt", "Hi"], { env })
      const turn = yield* model.next
      yield* turn.refuse(401, "bad key")
      const ended = yield* run.ended
      assert.strictEqual(ended.code, 5)
      assert.match(ended.stderr, /^daybook: .*bad key.*$/m)
      assert.notMatch(ended.stderr, /\n\s+at /)
    })
  )

  it.scopedLive("CL-40: a provider that cannot be reached is one sentence and exit 5", () =>
    Effect.gen(function* () {
      const here = yield* place
      const env = {
        DAYBOOK_BASE_URL: "http://127.0.0.1:1/v1",
        DAYBOOK_MODEL: "openai-compatible/held",
        DAYBOOK_MODEL_RETRIES: "0"
      }
      const ended = yield* here.run(["prompt", "Hi"], { env })
      assert.strictEqual(ended.code, 5)
      assert.match(ended.stderr, /^daybook: [^\n]+\n$/m)
    })
  )

  it.scopedLive("CL-11: a name goes on with its session and makes a new one only when nobody has it", () =>
    Effect.gen(function* () {
      const here = yield* place
      const first = yield* here.run(["prompt", "--session", "my work", "--no-run", "One"])
      const second = yield* here.run(["prompt", "--session", "my work", "--no-run", "Two"])
      const id = /ses_\S+/.exec(first.stdout)?.[0] ?? ""
      assert.include(second.stdout, id)
      const listed = jsonLines((yield* here.run(["sessions", "--json"])).stdout)
      assert.deepStrictEqual(
        listed.map((session) => session["title"]),
        ["my work"]
      )
    })
  )

  it.scopedLive("CL-24: the text comes from stdin when there are no words", () =>
    Effect.gen(function* () {
      const here = yield* place
      const ended = yield* here.run(["prompt", "--no-run", "--json"], { input: "from a pipe\n" })
      assert.deepInclude(jsonLines(ended.stdout)[0]?.["prompt"], { text: "from a pipe" })
    })
  )

  it.scopedLive("CL-25: an empty, a binary and an overlong prompt are refused and nothing is made", () =>
    Effect.gen(function* () {
      const here = yield* place
      const refused = [
        yield* here.run(["prompt"], { input: " \n" }),
        yield* here.run(["prompt", ""]),
        yield* here.run(["prompt", "-"], { input: Uint8Array.of(0xff, 0xfe, 0) }),
        yield* here.run(["prompt"], { input: "a\0b" }),
        yield* here.run(["prompt"], { input: "x".repeat(17 * 1024 * 1024) })
      ]
      for (const ended of refused) {
        assert.strictEqual(ended.code, 2, ended.stderr)
        assert.match(ended.stderr, /^daybook: [^\n]+\n$/)
      }
      assert.isFalse(existsSync(here.database))
    })
  )

  it.scopedLive("CL-21: the database's folder is made for the user alone", () =>
    Effect.gen(function* () {
      const here = yield* place
      yield* here.run(["prompt", "--no-run", "Hi"])
      assert.strictEqual(statSync(dirname(here.database)).mode & 0o777, 0o700)
    })
  )

  it.scopedLive("CL-28: with no key the offline model answers and says so in one line", () =>
    Effect.gen(function* () {
      const here = yield* place
      const ended = yield* here.run(["prompt", "Hello"])
      assert.strictEqual(ended.code, 0, ended.stderr)
      assert.strictEqual(ended.stderr.split("\n").filter((line) => line.includes("offline model")).length, 1)
    })
  )
})
