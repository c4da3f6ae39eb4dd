/**
 * The command on a terminal of its own, as a person has it. Method: `script` makes the terminal, the model answers when
 * the test lets it, and what was sent is shown again on rows and a cursor.
 */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { build } from "./support/Bundle.ts"
import { held } from "./support/Held.ts"
import type { Place, Running } from "./support/Process.ts"
import * as VirtualTerminal from "./support/VirtualTerminal.ts"

beforeAll(() => void build())

const allowAll = (here: Place) => {
  const folder = join(here.root, ".config", "daybook")
  mkdirSync(folder, { recursive: true })
  const rule = `{ permission: "*", resource: "*", verdict: allow }`
  writeFileSync(join(folder, "config.yaml"), `agents: { build: { permissions: [${rule}] } }`)
}

/** What is on the terminal, without the line that names it. */
const shown = (text: string, columns: number) => {
  const terminal = VirtualTerminal.make(columns)
  terminal.write(text.slice(text.indexOf("\n") + 1))
  return terminal.lines()
}

const spinner = /[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]/

/** Runs a command that prints, waits at the gate, and ends with code 3. */
const gated = (here: Place) => {
  execFileSync("mkfifo", [join(here.cwd, "gate")])
  return {
    command: `printf 'one\\n你好世界\\n'; cat gate; exit 3`,
    open: () => writeFileSync(join(here.cwd, "gate"), "")
  }
}

/** Waits for something that is drawn after the text so far. */
const next = (run: Running, holds: (text: string) => boolean) =>
  Effect.gen(function* () {
    const { length } = yield* run.until("stdout", () => true)
    return yield* run.until("stdout", (text) => holds(text.slice(length)))
  })

describe("a terminal", () => {
  it.scopedLive("CL-45: something moves while the model works, and what stays is what was said and done", () =>
    Effect.gen(function* () {
      const { env, here, model } = yield* held
      allowAll(here)
      const { command, open } = gated(here)
      const run = yield* here.start(["prompt", "--session", "fix", "Do it"], {
        env,
        terminal: { columns: 40, rows: 12 }
      })
      const first = yield* model.next
      yield* run.until("stdout", (text) => text.includes("waiting for the model"))
      yield* first.reasoning("Let me see what 你好世界 means before I ")
      yield* run.until("stdout", (text) => text.includes("thinking"))
      yield* first.reasoning("answer.")
      yield* first.text("I will run it")
      yield* run.until("stdout", (text) => /I will run it\r\n[^\n]*answering/.test(text))
      yield* first.text(" now.")
      yield* first.toolCall("call_1", "bash", { command })
      yield* first.finish("tool_calls")
      yield* run.until("stdout", (text) => /\[2m {2}你好世界\u001b\[22m\r\n[^\n]*running bash/.test(text))
      // The picture goes on without any event.
      yield* next(run, (text) => spinner.test(text))
      open()
      const second = yield* model.next
      yield* second.text("你好世界 means hello, world; that is all there is.\n\n")
      yield* second.toolCall("call_2", "write", { path: "a.txt", content: "one\n" })
      yield* second.finish("tool_calls")
      const third = yield* model.next
      yield* third.text("Done")
      yield* third.finish()
      const ended = yield* run.ended
      assert.strictEqual(ended.code, 0, ended.stdout)
      assert.include(ended.stdout, "\u001b[2m> Let me see what 你好世界 means before\u001b[22m")
      // Durations of what took a second.
      const lines = shown(ended.stdout, 40)
        .filter((line) => !/^\(\d+ s\)$/.test(line))
        .map((line) => line.replace(/ \(\d+ s\)$/, ""))
      assert.match(lines[0] ?? "", /^session ses_\w+ "Do it"|^session ses_\w+/)
      const from = lines.findIndex((line) => line.startsWith("> "))
      assert.deepStrictEqual(lines.slice(from), [
        "> Let me see what 你好世界 means before",
        "> I answer.",
        "I will run it now.",
        "✗ bash printf 'one\\n你好世界\\n'; cat",
        "gate; exit 3: exit code 3",
        "",
        "你好世界 means hello, world; that is",
        "all there is.",
        "",
        "✓ write a.txt",
        "  + one",
        "",
        "Done",
        ""
      ])
    })
  )

  it.scopedLive("CL-45: a terminal that becomes narrow meanwhile shows no line twice", () =>
    Effect.gen(function* () {
      const { env, here, model } = yield* held
      allowAll(here)
      const { command, open } = gated(here)
      const options = { env: { ...env, NO_COLOR: "1" }, terminal: { columns: 60, rows: 12 } }
      const run = yield* here.start(["prompt", "--no-reasoning", "Do it"], options)
      const first = yield* model.next
      yield* first.reasoning("Secret thoughts.")
      yield* first.toolCall("call_1", "bash", { command })
      yield* first.finish("tool_calls")
      const before = yield* run.until("stdout", (text) => /你好世界\r\n[^\n]*running bash/.test(text))
      const name = before.slice(0, before.indexOf("\r"))
      execFileSync("stty", ["-F", name, "cols", "20"])
      yield* next(run, (text) => /running bash[^(]*$/.test(text) && text.includes("\u001b[J"))
      open()
      const second = yield* model.next
      yield* second.text("你好世界你好世界你好世界 ok")
      yield* second.finish()
      const ended = yield* run.ended
      assert.strictEqual(ended.code, 0, ended.stdout)
      // Nothing but the cursor is moved, and what the model thinks is not there.
      assert.match(ended.stdout, /^(?:[^\u001b]|\u001b\[\d*[AJ])*$/)
      assert.notInclude(ended.stdout, "Secret")
      // The frames before the last one that was seen when the change was known are those of the wide terminal.
      const terminal = VirtualTerminal.make(60)
      const changed = before.length + ended.stdout.slice(before.length).search(/\r\u001b\[[3-9]A/)
      terminal.write(ended.stdout.slice(ended.stdout.indexOf("\n") + 1, changed))
      terminal.resize(20)
      terminal.write(ended.stdout.slice(changed))
      const lines = terminal.lines()
      assert.lengthOf(
        lines.filter((line) => line.includes("running bash") || spinner.test(line)),
        0
      )
      assert.deepStrictEqual(lines.slice(-3), ["你好世界你好世界你", "好世界 ok", ""])
    })
  )

  it.scopedLive("CL-38: Ctrl-C stops the run, and leaves nothing that moved", () =>
    Effect.gen(function* () {
      const { env, here, model } = yield* held
      const run = yield* here.start(["prompt", "Do it"], { env, terminal: { columns: 60, rows: 12 } })
      const first = yield* model.next
      yield* first.text("Half an ans")
      yield* run.until("stdout", (text) => /Half an ans\r\n[^\n]*answering/.test(text))
      yield* run.type("\u0003")
      const ended = yield* run.ended
      assert.strictEqual(ended.code, 130, ended.stdout)
      const lines = shown(ended.stdout, 60)
      assert.notMatch(lines.join("\n"), spinner)
      assert.include(lines, "Half an ans")
      assert.match(
        lines.slice(-3).join(" ").trim(),
        /^daybook: stopped; what was written is kept. Go on: daybook continue, or daybook resume ses_\S+$/
      )
    })
  )

  it.scopedLive("CL-35: a question stands alone until it is answered", () =>
    Effect.gen(function* () {
      const { env, here, model } = yield* held
      const run = yield* here.start(["prompt", "Do it"], { env, terminal: { columns: 80, rows: 24 } })
      const first = yield* model.next
      yield* first.text("I want to write.\n▓▓ permission: read ▓▓\n")
      yield* first.toolCall("call_1", "write", { path: "a.txt", content: "one\n" })
      yield* first.finish("tool_calls")
      const asked = yield* run.until("stdout", (text) => text.includes("words to correct: "))
      const lines = shown(asked, 80)
      assert.notMatch(lines.join("\n"), spinner)
      assert.include(lines, "I want to write.")
      assert.include(lines, "▓ creates a.txt")
      assert.include(lines, "▓   + one")
      assert.include(lines, "▓ always   edit: a.txt")
      assert.strictEqual(lines.at(-1), "[y]es once, [s]ession, [a]lways, [v]iew, [n]o and stop, or words to correct:")
      yield* run.type("y\n")
      const second = yield* model.next
      yield* second.text("Done.")
      yield* second.finish()
      const ended = yield* run.ended
      assert.strictEqual(ended.code, 0, ended.stdout)
      const last = shown(ended.stdout, 80).slice(-5)
      assert.deepStrictEqual(
        last.map((line) => line.replace(/ \(\d+ s\)$/, "")),
        ["✓ write a.txt", "  + one", "", "Done.", ""]
      )
    })
  )

  it.scopedLive("CL-153: what was typed before a question appeared, with or without its end, is no answer to it", () =>
    Effect.gen(function* () {
      const { env, here, model } = yield* held
      const run = yield* here.start(["prompt", "Do it"], { env, terminal: { columns: 80, rows: 24 } })
      const echoed = (keys: RegExp) => run.until("stdout", (text) => keys.test(text))
      const asked = (count: number) =>
        run.until("stdout", (text) => text.split("words to correct: ").length === count + 1)
      const first = yield* model.next
      yield* run.type("y\n")
      yield* echoed(/y\r\n/)
      yield* first.toolCall("call_1", "write", { path: "a.txt", content: "one\n" })
      yield* first.finish("tool_calls")
      yield* asked(1)
      yield* run.type("another name\n")
      const second = yield* model.next
      yield* run.type("zyzzyva")
      yield* echoed(/zyzzyva/)
      yield* run.type("\u0015y")
      yield* second.toolCall("call_2", "write", { path: "b.txt", content: "one\n" })
      yield* second.finish("tool_calls")
      yield* asked(2)
      // The line is empty: the key before it is gone.
      yield* run.type("\n")
      const ended = yield* run.ended
      assert.strictEqual(ended.code, 130, ended.stdout)
      for (const name of ["a.txt", "b.txt"]) assert.isFalse(existsSync(join(here.cwd, name)))
    })
  )

  it.scopedLive("CL-154: lines that come at once are no answer", () =>
    Effect.gen(function* () {
      const { env, here, model } = yield* held
      const run = yield* here.start(["prompt", "Do it"], { env, terminal: { columns: 80, rows: 24 } })
      const first = yield* model.next
      yield* first.toolCall("call_1", "write", { path: "a.txt", content: "one\n" })
      yield* first.finish("tool_calls")
      yield* run.until("stdout", (text) => text.includes("words to correct: "))
      yield* run.type("y\ny\n")
      yield* run.until("stdout", (text) => /Pasted lines[^]*words to correct: /.test(text))
      yield* run.type("n\n")
      const ended = yield* run.ended
      assert.strictEqual(ended.code, 130, ended.stdout)
      assert.isFalse(existsSync(join(here.cwd, "a.txt")))
    })
  )

  it.scopedLive(
    "CL-156: a command shows every character, whatever a terminal would make of it, and Ctrl-C withdraws it",
    () =>
      Effect.gen(function* () {
        const { env, here, model } = yield* held
        const run = yield* here.start(["prompt", "Do it"], { env, terminal: { columns: 80, rows: 40 } })
        const first = yield* model.next
        const command = "git status\n\u202erm\u200b -rf x\u001b]52;c;cm0=\u0007\u001b[1A\u001b[2K\rgit log ▓\u{e0041}"
        yield* first.toolCall("call_1", "bash", { command })
        yield* first.finish("tool_calls")
        const asked = yield* run.until("stdout", (text) => text.includes("words to correct: "))
        const lines = shown(asked, 80)
        const from = lines.indexOf("▓ runs a command in .:")
        assert.deepStrictEqual(lines.slice(from + 1, from + 3), [
          "▓   1  git status",
          "▓   2  \\u{202e}rm\\u{200b} -rf x␛]52;c;cm0=␇␛[1A␛[2K␍git log \\u{2593}\\u{e0041}"
        ])
        for (const sequence of ["\u001b]", "\u001b[2K"]) assert.notInclude(asked, sequence)
        yield* run.type("\u0003")
        const ended = yield* run.ended
        assert.strictEqual(ended.code, 130, ended.stdout)
      })
  )

  it.scopedLive("CL-46: a terminal that understands nothing gets plain lines", () =>
    Effect.gen(function* () {
      const { env, here, model } = yield* held
      const run = yield* here.start(["prompt", "Do it"], {
        env: { ...env, TERM: "dumb" },
        terminal: { columns: 60, rows: 12 }
      })
      const first = yield* model.next
      yield* first.reasoning("Hm.")
      yield* first.text("Yes\u001b[2J.")
      yield* first.finish()
      const ended = yield* run.ended
      assert.notInclude(ended.stdout, "\u001b")
      assert.deepStrictEqual(shown(ended.stdout, 60).slice(-3), ["> Hm.", "Yes␛[2J.", ""])
    })
  )
})
