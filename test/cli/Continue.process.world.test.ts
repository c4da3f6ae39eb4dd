/** `daybook continue` and `daybook history`, and prompts that are typed at a terminal. */
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, beforeAll, it } from "@effect/vitest"
import { Effect } from "effect"
import { parse } from "../../packages/cli/src/terminal/Breadcrumb.ts"
import { recallable } from "../../packages/cli/src/terminal/PromptLine.ts"
import { terminalID } from "../../packages/log/src/support/TerminalID.ts"
import { build } from "./support/Bundle.ts"
import { jsonLines, place } from "./support/Process.ts"

beforeAll(() => void build())

const terminal = { columns: 80, rows: 24 }

it("CL-261: a terminal is named by its device, else by a variable of its own, as the name of a file", () => {
  assert.strictEqual(terminalID("/dev/pts/3", { TMUX_PANE: "%1" }), "dev-pts-3")
  assert.strictEqual(terminalID(undefined, { TERM_SESSION_ID: "w0t1:../x" }), "TERM_SESSION_ID-w0t1-..-x")
  assert.strictEqual(terminalID("pipe:[1]", { WT_SESSION: "" }), undefined)
})

it("CL-262: only two lines, a folder and a session, are a breadcrumb", () => {
  assert.deepStrictEqual(parse("/work\nses_a\n")?.directory, "/work")
  for (const text of ["", "/work", "/work\n", "/work\nabc\n", "\nses_a\n", "/work\nses_a\nmore\n"]) {
    assert.isUndefined(parse(text), text)
  }
})

it("CL-264: prompts of several lines, and those that a terminal cannot show as they are, are not recalled", () => {
  assert.deepStrictEqual(recallable(["one", "two\nlines", "\u001b[31mred", "x".repeat(2_001)]), ["one"])
})

it.scopedLive(
  "CL-260: continue takes the session last used in the folder, prompts it, and without text only shows it",
  () =>
    Effect.gen(function* () {
      const here = yield* place
      const none = yield* here.run(["continue"])
      assert.strictEqual(none.code, 3)
      yield* here.run(["prompt", "--no-run", "--session", "one", "first"])
      yield* here.run(["prompt", "--no-run", "--session", "two", "second"])
      const shown = yield* here.run(["continue", "--json"])
      assert.deepInclude(jsonLines(shown.stdout)[0], { title: "two" })
      const [two] = jsonLines(shown.stdout)
      const next = yield* here.run(["continue", "--no-run", "--json", "third"])
      assert.deepInclude(jsonLines(next.stdout)[0], { sessionID: two?.["id"] })
      const elsewhere = join(here.root, "elsewhere")
      mkdirSync(elsewhere)
      assert.strictEqual((yield* here.run(["continue", "text"], { cwd: elsewhere })).code, 3)
      const history = yield* here.run(["history"])
      assert.deepStrictEqual(
        history.stdout.split("\n").map((line) => line.split("  ")[2]),
        ["third", "second", "first", undefined]
      )
      const found = jsonLines((yield* here.run(["history", "--json", "--cwd", ".", "sec"])).stdout)
      assert.deepStrictEqual(
        found.map((each) => each["text"]),
        ["second"]
      )
      assert.strictEqual((yield* here.run(["history", "--cwd", elsewhere])).stdout, "")
    })
)

it.scopedLive(
  "CL-261, CL-262: the session of the terminal comes first, if it was used from this folder and still exists",
  () =>
    Effect.gen(function* () {
      const here = yield* place
      const env = { XDG_DATA_HOME: join(here.root, "share") }
      const folder = join(here.root, "share", "daybook", "terminals")
      const atTerminal = (words: ReadonlyArray<string>) =>
        Effect.scoped(Effect.flatMap(here.start(words, { env, terminal }), ({ ended }) => ended))
      yield* atTerminal(["prompt", "--no-run", "--session", "mine", "first"])
      const [name = ""] = readdirSync(folder)
      assert.match(name, /^dev-pts-\d+$/)
      const path = join(folder, name)
      assert.deepStrictEqual([statSync(folder).mode & 0o777, statSync(path).mode & 0o777], [0o700, 0o600])
      const [directory, sessionID] = readFileSync(path, "utf8").split("\n")
      assert.strictEqual(directory, here.cwd)
      yield* here.run(["prompt", "--no-run", "--session", "other", "second"], { env })
      // Each test process has a terminal of its own, so the names of all terminals that it may get hold the breadcrumb.
      for (let number = 0; number < 64; number++) {
        writeFileSync(join(folder, `dev-pts-${number}`), `${directory}\n${sessionID}\n`)
      }
      const shown = yield* atTerminal(["continue"])
      assert.include(shown.stdout, "mine")
      yield* here.run(["remove", sessionID ?? "", "--yes"], { env })
      const gone = yield* atTerminal(["continue"])
      assert.include(gone.stdout, "other")
    })
)

it.scopedLive("CL-264, CL-265: a prompt is typed, recalled with up-arrow, and pasted lines are one prompt", () =>
  Effect.gen(function* () {
    const here = yield* place
    yield* here.run(["prompt", "--no-run", "--session", "one", "an earlier prompt"])
    const typed = (keys: ReadonlyArray<string>) =>
      Effect.scoped(
        Effect.gen(function* () {
          const run = yield* here.start(["prompt", "--no-run", "--session", "two"], { terminal })
          yield* run.until("stdout", (text) => text.includes("> "))
          for (const key of keys) yield* run.type(key)
          return yield* run.ended
        })
      )
    const recalled = yield* typed(["\u001b[A", " again\r"])
    assert.strictEqual(recalled.code, 0, recalled.stdout)
    const pasted = yield* typed(["one\rtwo\rthree", "\r"])
    assert.strictEqual(pasted.code, 0, pasted.stdout)
    const marked = yield* typed(["\u001b[200~four\rfive\r\u001b[201~", "\r"])
    assert.strictEqual(marked.code, 0, marked.stdout)
    for (const mark of ["\u001b[?2004h", "\u001b[?2004l"]) assert.include(marked.stdout, mark)
    const history = jsonLines((yield* here.run(["history", "--json"])).stdout)
    assert.deepStrictEqual(
      history.map((each) => each["text"]),
      ["four\nfive", "one\ntwo\nthree", "an earlier prompt again", "an earlier prompt"]
    )
    const ended = yield* typed(["\u0004"])
    assert.strictEqual(ended.code, 2)
  })
)
