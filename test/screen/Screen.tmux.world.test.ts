/**
 * The screen in a terminal, as a person has it. Method: tmux shows it and types, the model answers when the test lets it, and what
 * the terminal shows and keeps above is read.
 */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { existsSync, mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { build } from "../cli/support/Bundle.ts"
import { held } from "../cli/support/Held.ts"
import { temporaryFolder } from "../support/Database.ts"
import { lacks } from "../support/Parts.ts"
import { opened, send, status } from "./support/Opened.ts"
import * as Tmux from "./support/Tmux.ts"

/** A picture of one red point. */
const dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

beforeAll(() => void build())

describe.skipIf(lacks("tmux"))("the screen", () => {
  it.scopedLive("SC-501: a prompt is answered below it, as Markdown, and the editor stays", () =>
    Effect.gen(function* () {
      const { model, pane } = yield* opened()
      yield* send(pane, "Say it")
      const turn = yield* model.next
      yield* pane.until((screen) => screen.includes("▌ Say it") && screen.includes("waiting for the model"))
      yield* turn.text("# Title\n\nIt is **bold** and `code`.\n\n- one\n- tw")
      yield* pane.until((screen) => screen.includes("- tw\n") && screen.includes("answering"))
      yield* turn.text("o\n")
      yield* turn.finish()
      const screen = yield* pane.until((screen) => screen.includes("- two\n") && !screen.includes("answering"))
      const lines = screen.split("\n").map((line) => line.trimEnd())
      const from = lines.indexOf("▌ Say it")
      assert.deepStrictEqual(lines.slice(from, from + 8), [
        "▌ Say it",
        "",
        "Title",
        "",
        "It is bold and code.",
        "",
        "- one",
        "- two"
      ])
    })
  )

  it.scopedLive("SC-572: a prompt that is typed while the screen starts is sent by its Enter", () =>
    Effect.gen(function* () {
      const { env, here, model } = yield* held
      const pane = yield* Tmux.start(here, { env })
      yield* pane.type("Typed early")
      yield* pane.press("Enter")
      const turn = yield* model.next
      assert.include(JSON.stringify(turn.body.messages), "Typed early")
      yield* turn.text("Read.")
      yield* turn.finish()
      yield* pane.until((screen) => screen.includes("Read."))
    })
  )

  it.scopedLive("SC-503: a long answer scrolls away whole, and once", () =>
    Effect.gen(function* () {
      const { model, pane } = yield* opened()
      yield* send(pane, "A long one")
      const turn = yield* model.next
      const paragraphs = Array.from({ length: 60 }, (_, at) => `Paragraph ${at} is written here.`)
      for (const paragraph of paragraphs) yield* turn.text(`${paragraph}\n\n`)
      yield* turn.text("The end.")
      yield* turn.finish()
      yield* pane.until((screen) => screen.includes("The end.") && !screen.includes("answering"))
      const all = (yield* pane.all).split("\n").map((line) => line.trimEnd())
      assert.deepStrictEqual(
        all.filter((line) => line.startsWith("Paragraph")),
        paragraphs
      )
      assert.strictEqual(all.filter((line) => line === "▌ A long one").length, 1)
    })
  )

  it.scopedLive("SC-503: wide characters stay whole on 40 columns", () =>
    Effect.gen(function* () {
      const { model, pane } = yield* opened({ columns: 40 })
      yield* send(pane, "你好世界")
      const turn = yield* model.next
      const words = Array.from({ length: 30 }, (_, at) => `日本語テキスト${at}👩‍👩‍👧`)
      for (const word of words) yield* turn.text(`${word} `)
      yield* turn.finish()
      yield* pane.until((screen) => screen.includes("日本語テキスト29") && !screen.includes("answering"))
      const all = (yield* pane.all).split("\n").join(" ")
      for (const at of words.keys()) assert.include(all, `日本語テキスト${at}`)
      assert.include(all, "▌ 你好世界")
    })
  )

  it.scopedLive(
    "SC-503: a terminal that becomes narrower and wider while an answer is written loses no line of it",
    () =>
      Effect.gen(function* () {
        const { model, pane } = yield* opened()
        yield* send(pane, "Count")
        const turn = yield* model.next
        const say = (from: number, to: number) =>
          Effect.forEach(
            Array.from({ length: to - from }, (_, at) => from + at),
            (at) => turn.text(`Number ${at}.\n\n`),
            {
              discard: true
            }
          )
        yield* say(0, 12)
        yield* pane.until((screen) => screen.includes("Number 11."))
        yield* pane.resize(40, 20)
        yield* say(12, 24)
        yield* pane.until((screen) => screen.includes("Number 23."))
        yield* pane.resize(100, 30)
        yield* say(24, 36)
        yield* turn.finish()
        yield* pane.until((screen) => screen.includes("Number 35.") && !screen.includes("answering"))
        const all = (yield* pane.all).split("\n").map((line) => line.trimEnd())
        // Rows that scrolled away while the terminal shrank stay: a line may be there twice, and none is missing.
        const numbers = all.flatMap((line) => /^Number (\d+)\.$/.exec(line)?.[1] ?? [])
        assert.deepStrictEqual(
          numbers.filter((number, at) => number !== numbers[at - 1]),
          Array.from({ length: 36 }, (_, at) => String(at))
        )
      })
  )

  it.scopedLive("SC-516: a paste of 5,000 lines is a chip, and is sent whole", () =>
    Effect.gen(function* () {
      const { model, pane } = yield* opened()
      const text = Array.from({ length: 5_000 }, (_, at) => `line ${at} of the paste`).join("\n")
      yield* pane.type("See: ")
      yield* pane.paste(`${text}\n`)
      yield* pane.until((screen) => /See: \[paste #1 \+5000 lines\]/.test(screen))
      yield* pane.press("Enter")
      const turn = yield* model.next
      const prompt = JSON.stringify(turn.body.messages.at(-1))
      assert.include(prompt, JSON.stringify(`See: ${text}`).slice(1, -1))
      yield* turn.text("Read.")
      yield* turn.finish()
      const screen = yield* pane.until((screen) => screen.includes("Read."))
      assert.include(screen, "more lines")
    })
  )

  it.scopedLive("SC-550, SC-551: a picture's pasted path is a chip, and the model is shown the picture", () =>
    Effect.gen(function* () {
      const { model, pane } = yield* opened()
      const folder = yield* temporaryFolder
      const path = join(folder, "a.png")
      writeFileSync(path, Buffer.from(dot, "base64"))
      yield* pane.type("Which colour? ")
      yield* pane.paste(`'${path}'`)
      yield* pane.until((screen) => screen.includes("[picture /"))
      yield* pane.press("Enter")
      const turn = yield* model.next
      assert.include(JSON.stringify(turn.body.messages.at(-1)), "image/png")
      yield* turn.text("Red.")
      yield* turn.finish()
      yield* pane.until((screen) => screen.includes("Red."))
    })
  )

  it.scopedLive("SC-569: Ctrl-V attaches the picture of the clipboard, or says that there is none", () =>
    Effect.gen(function* () {
      const place = yield* held
      const tools = join(place.here.root, "tools")
      mkdirSync(tools)
      const clipboard = join(tools, "clipboard.png")
      const standIn = `#!/bin/sh\n[ "$*" = "--no-newline --type image/png" ] || exit 9\ncat "${clipboard}"\n`
      writeFileSync(join(tools, "wl-paste"), standIn, { mode: 0o755 })
      const env = { ...place.env, PATH: `${tools}:${process.env["PATH"] ?? ""}` }
      const pane = yield* Tmux.start(place.here, { env })
      yield* pane.until((screen) => screen.includes(status))
      yield* pane.press("C-v")
      yield* pane.until((screen) => screen.includes("the clipboard has no picture"))
      writeFileSync(clipboard, Buffer.from(dot, "base64"))
      yield* pane.type("Which colour? ")
      yield* pane.press("C-v")
      yield* pane.until((screen) =>
        /Which colour\? \[picture [^\]]*clipboard-1\.png\]/.test(screen.replaceAll("\n", ""))
      )
      yield* pane.press("Enter")
      const turn = yield* place.model.next
      assert.include(JSON.stringify(turn.body.messages.at(-1)), dot)
      yield* turn.finish()
    })
  )

  it.scopedLive("SC-509: Enter joins the work, Alt-Enter waits for its end, and Alt-Up takes the last one back", () =>
    Effect.gen(function* () {
      const { model, pane } = yield* opened()
      yield* send(pane, "Begin")
      const first = yield* model.next
      yield* first.text("Working")
      yield* pane.type("later")
      yield* pane.until((screen) => screen.includes("later"))
      yield* pane.press("M-Enter")
      yield* pane.until((screen) => screen.includes("⋯ queued: later"))
      yield* send(pane, "and this")
      yield* pane.until((screen) => screen.includes("⋯ joins: and this") && screen.includes("2 waiting"))
      yield* pane.press("M-Up")
      yield* pane.until((screen) => !screen.includes("⋯ joins") && /^and this/m.test(screen))
      yield* pane.press("Enter")
      yield* pane.until((screen) => screen.includes("⋯ joins: and this"))
      yield* first.finish()
      const second = yield* model.next
      assert.include(JSON.stringify(second.body.messages), "and this")
      assert.notInclude(JSON.stringify(second.body.messages), "later")
      yield* second.text("This too.")
      yield* second.finish()
      const third = yield* model.next
      assert.include(JSON.stringify(third.body.messages), "later")
      yield* third.text("All done.")
      yield* third.finish()
      yield* pane.until((screen) => screen.includes("All done.") && screen.includes("▌ later"))
    })
  )

  it.scopedLive("SC-510: Esc stops the activity, and what was written stays", () =>
    Effect.gen(function* () {
      const { model, pane } = yield* opened()
      yield* send(pane, "Begin")
      const turn = yield* model.next
      yield* turn.text("Half of it")
      yield* pane.until((screen) => screen.includes("Half of it"))
      yield* pane.press("Escape")
      yield* turn.closed
      const screen = yield* pane.until((screen) => screen.includes("stopped; what was written is kept"))
      assert.include(screen, "Half of it")
    })
  )

  it.scopedLive("SC-521: keys that were typed before a permission was asked are text; the answer comes after", () =>
    Effect.gen(function* () {
      const { here, model, pane } = yield* opened()
      yield* send(pane, "Write it")
      const turn = yield* model.next
      yield* pane.type("yyy")
      yield* turn.toolCall("call_1", "write", { path: "a.txt", content: "one\n" })
      yield* turn.finish("tool_calls")
      yield* pane.until((screen) => screen.includes("permission: edit"))
      // The question is drawn, and its moment has passed: the editor has given way.
      const asked = yield* pane.until((screen) => screen.includes("[y]es once") && !screen.includes("yyy"))
      assert.include(asked, "creates a.txt")
      assert.isFalse(existsSync(join(here.cwd, "a.txt")))
      yield* pane.press("y")
      const second = yield* model.next
      assert.isTrue(existsSync(join(here.cwd, "a.txt")))
      yield* second.text("Written.")
      yield* second.finish()
      const screen = yield* pane.until((screen) => screen.includes("Written."))
      assert.include(screen, "+ one")
      assert.match(screen, /^yyy/m)
    })
  )

  it.scopedLive("SC-520: a permission that does not fit on the terminal is in the scrollback, whole and once", () =>
    Effect.gen(function* () {
      const { here, model, pane } = yield* opened({ columns: 40, rows: 10 })
      yield* send(pane, "Write it")
      const turn = yield* model.next
      yield* turn.toolCall("call_1", "write", { path: "a.txt", content: "one\n" })
      yield* turn.finish("tool_calls")
      yield* pane.until((screen) => screen.includes("[n]o") && !screen.includes("─────"))
      const all = yield* pane.all
      assert.strictEqual(all.split("permission: edit").length, 2)
      for (const part of ["agent    build", "creates a.txt", "+ one"]) assert.include(all, part)
      yield* pane.press("y")
      yield* (yield* model.next).finish()
      assert.isTrue(existsSync(join(here.cwd, "a.txt")))
    })
  )

  it.scopedLive("SC-522: a paste answers no permission, and is kept in the editor", () =>
    Effect.gen(function* () {
      const { here, model, pane } = yield* opened()
      yield* send(pane, "Write it")
      const turn = yield* model.next
      yield* turn.toolCall("call_1", "write", { path: "a.txt", content: "one\n" })
      yield* turn.finish("tool_calls")
      yield* pane.until((screen) => screen.includes("[y]es once") && !screen.includes("─────"))
      yield* pane.paste("yes, but later")
      yield* pane.press("n")
      yield* pane.until((screen) => /stopped|declined/.test(screen) && screen.includes("\nyes, but later"))
      assert.isFalse(existsSync(join(here.cwd, "a.txt")))
    })
  )

  it.scopedLive("SC-523: a question of the model is answered in an editor of its own", () =>
    Effect.gen(function* () {
      const { model, pane } = yield* opened()
      yield* send(pane, "Ask me")
      const turn = yield* model.next
      yield* pane.type("half a pro")
      const questions = [{ question: "Which colour?", options: [{ label: "red" }, { label: "blue" }] }]
      yield* turn.toolCall("call_1", "question", { questions })
      yield* turn.finish("tool_calls")
      yield* pane.until((screen) => screen.includes("[2] blue") && !screen.includes("half a pro"))
      yield* pane.press("2")
      yield* pane.press("Enter")
      const second = yield* model.next
      assert.include(JSON.stringify(second.body.messages), "blue")
      yield* second.finish()
      yield* pane.until((screen) => /^half a pro/m.test(screen) && !screen.includes("running"))
    })
  )

  it.scopedLive(
    "SC-568: over a slow connection the answer is drawn whole, and what was typed ahead answers nothing",
    () =>
      Effect.gen(function* () {
        const { here, model, pane } = yield* opened({ delay: 150 })
        yield* send(pane, "Write it: 你好")
        const turn = yield* model.next
        assert.include(JSON.stringify(turn.body.messages), "Write it: 你好")
        for (let at = 0; at < 40; at++) yield* turn.text(`Zeile ${at}: 日本語テキスト.\n\n`)
        yield* pane.type("yes")
        yield* pane.until((screen) => /^yes/m.test(screen))
        yield* turn.toolCall("call_1", "write", { path: "a.txt", content: "one\n" })
        yield* turn.finish("tool_calls")
        // The question is drawn, and its moment has passed: the editor has given way.
        yield* pane.until((screen) => screen.includes("[y]es once") && !screen.includes("─────"))
        assert.isFalse(existsSync(join(here.cwd, "a.txt")))
        yield* pane.press("y")
        const second = yield* model.next
        assert.isTrue(existsSync(join(here.cwd, "a.txt")))
        yield* second.text("Written.")
        yield* second.finish()
        yield* pane.until(
          (screen) => screen.includes("Written.") && /^yes/m.test(screen) && !screen.includes("answering")
        )
        const lines = (yield* pane.all)
          .split("\n")
          .flatMap((line) => /^Zeile (\d+): 日本語テキスト\.$/.exec(line.trimEnd())?.[1] ?? [])
        assert.deepStrictEqual(
          lines,
          Array.from({ length: 40 }, (_, at) => String(at))
        )
      })
  )

  it.scopedLive("SC-525: two screens of one session show the same, and both prompt it", () =>
    Effect.gen(function* () {
      const { env, here, model, pane } = yield* opened()
      yield* send(pane, "From the first")
      const turn = yield* model.next
      yield* turn.text("To both.")
      yield* turn.finish()
      yield* pane.until((screen) => screen.includes("To both.") && !screen.includes("answering"))
      const other = yield* Tmux.start(here, { env, name: "other", words: "attach 'From the first'" })
      yield* other.until((screen) => screen.includes("To both.") && screen.includes(status))
      yield* send(other, "From the second")
      const second = yield* model.next
      yield* second.text("Again.")
      yield* second.finish()
      for (const each of [pane, other]) {
        yield* each.until((screen) => screen.includes("▌ From the second") && screen.includes("Again."))
      }
    })
  )

  it.scopedLive("SC-515: after kill -9 the next screen has the half-written prompt, in its session", () =>
    Effect.gen(function* () {
      const { env, here, model, pane } = yield* opened()
      yield* send(pane, "Remember this")
      const turn = yield* model.next
      yield* turn.text("I do.")
      yield* turn.finish()
      yield* pane.until((screen) => screen.includes("I do.") && !screen.includes("answering"))
      yield* pane.type("and then I wanted")
      yield* pane.until((screen) => screen.includes("and then I wanted"))
      yield* pane.signal("SIGKILL")
      yield* pane.until((screen) => screen.includes("ended 137"))
      const next = yield* Tmux.start(here, { env, name: "next" })
      const screen = yield* next.until((screen) => screen.includes("and then I wanted") && screen.includes("I do."))
      assert.include(screen, "▌ Remember this")
      yield* next.press("Enter")
      const second = yield* model.next
      assert.include(JSON.stringify(second.body.messages), "I do.")
      yield* second.finish()
    })
  )

  it.scopedLive("SC-513: a signal leaves a clean terminal, and its code", () =>
    Effect.gen(function* () {
      const { model, pane } = yield* opened()
      yield* send(pane, "Begin")
      const turn = yield* model.next
      yield* turn.text("Half of it")
      yield* pane.until((screen) => screen.includes("Half of it"))
      yield* pane.signal("SIGTERM")
      const screen = yield* pane.until((screen) => screen.includes("ended 143") && screen.includes("echo"))
      assert.match(screen, /^icanon echo/m)
      assert.notInclude(screen, "─────")
      assert.strictEqual(yield* pane.fact("#{cursor_flag} #{alternate_on}"), "1 0")
    })
  )

  it.scopedLive("SC-514: Ctrl-Z gives the terminal to the shell, and afterwards the screen is drawn again", () =>
    Effect.gen(function* () {
      const { pane } = yield* opened({ jobs: true })
      yield* pane.type("half a prompt")
      yield* pane.until((screen) => screen.includes("half a prompt"))
      yield* pane.press("C-z")
      const shell = yield* pane.until((screen) => screen.includes("suspended 148") && screen.includes("icanon echo"))
      assert.notInclude(shell, "─────")
      yield* pane.press("Enter")
      yield* pane.until((screen) => /^half a prompt/m.test(screen) && screen.includes(status))
      yield* pane.type(" goes on")
      yield* pane.until((screen) => screen.includes("half a prompt goes on"))
    })
  )

  it.scopedLive("SC-512: Ctrl-C clears the text, and twice without one leaves", () =>
    Effect.gen(function* () {
      const { pane } = yield* opened()
      yield* pane.type("some text")
      yield* pane.until((screen) => screen.includes("some text"))
      yield* pane.press("C-c")
      yield* pane.until((screen) => !screen.includes("some text"))
      yield* pane.press("C-c")
      yield* pane.until((screen) => screen.includes("Ctrl-C again leaves"))
      yield* pane.press("C-c")
      const screen = yield* pane.until((screen) => screen.includes("ended 0") && screen.includes("echo"))
      assert.match(screen, /^icanon echo/m)
    })
  )

  it.scopedLive("SC-513: leaving by a key removes the rows, and nothing draws them again", () =>
    Effect.gen(function* () {
      const { pane } = yield* opened()
      yield* pane.press("C-c")
      yield* pane.until((screen) => screen.includes("Ctrl-C again leaves"))
      yield* pane.press("C-c")
      const screen = yield* pane.until((screen) => screen.includes("ended 0") && screen.includes("echo"))
      assert.notInclude(screen, "─────")
      assert.notInclude(screen, "Ctrl-C again leaves")
    })
  )

  it.scopedLive("SC-512: Ctrl-D at the question whether to trust the project leaves", () =>
    Effect.gen(function* () {
      const { env, here } = yield* held
      writeFileSync(join(here.cwd, "AGENTS.md"), "Be brief.")
      const pane = yield* Tmux.start(here, { env })
      yield* pane.until((screen) => screen.includes("[n]ot now:"))
      yield* pane.press("C-d")
      const screen = yield* pane.until((screen) => screen.includes("ended 0") && screen.includes("echo"))
      assert.notInclude(screen, "─────")
    })
  )

  it.scopedLive("SC-534: a command after ! is shown to the model, one after !! is not", () =>
    Effect.gen(function* () {
      const { model, pane } = yield* opened()
      yield* send(pane, "!echo for-the-model")
      yield* pane.until((screen) => /^ {2}for-the-model/m.test(screen))
      yield* send(pane, "!!echo for-me")
      yield* pane.until((screen) => /^ {2}for-me/m.test(screen))
      yield* send(pane, "What came out?")
      const turn = yield* model.next
      const shown = JSON.stringify(turn.body.messages)
      assert.include(shown, "for-the-model")
      assert.notInclude(shown, "for-me")
      yield* turn.finish()
    })
  )

  it.scopedLive("SC-534: Esc ends a command, and a note says so", () =>
    Effect.gen(function* () {
      const { pane } = yield* opened()
      yield* send(pane, "!sleep 600")
      yield* pane.until((screen) => screen.includes("running sleep 600"))
      yield* pane.press("Escape")
      yield* pane.until((screen) => screen.includes("stopped: sleep 600") && !screen.includes("running"))
    })
  )

  it.scopedLive("SC-502: Enter goes on with the last session here, a prompt begins another", () =>
    Effect.gen(function* () {
      const { env, here, model } = yield* held
      const run = yield* Effect.fork(here.run(["prompt", "The first one"], { env }))
      const turn = yield* model.next
      yield* turn.text("Answered.")
      yield* turn.finish()
      yield* Fiber.join(run)
      const pane = yield* Tmux.start(here, { env })
      yield* pane.until((screen) => screen.includes('Enter goes on with "The first one"') && screen.includes(status))
      yield* pane.press("Enter")
      const screen = yield* pane.until((screen) => screen.includes("▌ The first one") && screen.includes("Answered."))
      assert.notInclude(screen, "earlier messages")
    })
  )
})
