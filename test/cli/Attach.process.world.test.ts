/** `daybook shell attach`, at a real terminal and with commands from stdin. The tests share one host. */
import { assert, beforeAll, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { begun, processes } from "../shell/support/Processes.ts"
import { build } from "./support/Bundle.ts"
import type { Running } from "./support/Process.ts"
import { type ShellPlace, shellPlace } from "./support/ShellHost.ts"

beforeAll(() => void build())

class Here extends Context.Tag("test/Here")<Here, ShellPlace>() {}

const terminal = { columns: 100, rows: 24 }

/** What the terminal shows after `before`, without sequences. */
const shownAfter = (text: string, before: number): string =>
  text
    .slice(before)
    .replaceAll("\r\u001b[J", "<cleared>")
    // oxlint-disable-next-line no-control-regex
    .replaceAll(/\u001b\[[\d;]*[A-Za-z]/g, "")
    .replaceAll("\r", "")

/** A console in a folder that is known to be `/usr`. */
const attached = Effect.fnUntraced(function* (id: string) {
  const here = yield* Here
  const running = yield* here.startShell(["attach", id], { terminal })
  const prompt = `${id} /usr $ `
  let read = 0
  /** Types, and waits for a text; returns what was shown since the last call. */
  const type = (keys: string, until: string) =>
    Effect.gen(function* () {
      const from = read
      yield* running.type(keys)
      const text = yield* running.until("stdout", (all) => shownAfter(all, from).endsWith(until))
      read = text.length
      return shownAfter(text, from)
    })
  yield* type("", prompt)
  return { running, prompt, type }
})

const ended = ({ ended: end }: Running) => Effect.map(end, ({ code }) => code)

layer(Layer.scoped(Here, shellPlace()), { excludeTestServices: true })("attach", (it) => {
  it.scoped("SL-190: the console shows the folder, runs each line, and Ctrl-D leaves the shell open", () =>
    Effect.gen(function* () {
      const here = yield* Here
      const id = yield* here.create("--cwd", "/usr")
      const { prompt, running, type } = yield* attached(id)
      assert.strictEqual(yield* type("echo $((1+1)); (exit 3)\r", prompt), `echo $((1+1)); (exit 3)\n2\n${prompt}`)
      assert.include(yield* type("cd /; V=kept\r", `${id} / $ `), `${id} / $ `)
      // Output without a newline stays, and the prompt begins a line of its own.
      assert.include(yield* type("cd /usr; printf part\r", prompt), `\npart\n${prompt}`)
      yield* type("\u0004", `${id} stays open\n`)
      assert.strictEqual(yield* ended(running), 0)
      assert.strictEqual((yield* here.shell(["exec", id, "echo $V"])).stdout, "kept\n")
    })
  )

  it.scoped("SL-190: Ctrl-C stops the running command, and clears the line at the prompt", () =>
    Effect.gen(function* () {
      const here = yield* Here
      const id = yield* here.create("--cwd", "/usr")
      const { prompt, type } = yield* attached(id)
      yield* type("V=kept; echo begun; sleep 1001.1\r", "begun\n")
      yield* begun("sleep 1001.1")
      assert.strictEqual(yield* type("\u0003", prompt), `^C\n${prompt}`)
      assert.deepStrictEqual(yield* processes("sleep 1001.1"), [])
      yield* type("echo wrong", "echo wrong")
      assert.include(yield* type("\u0003", `^C\n${prompt}`), "^C\n")
      yield* type("echo 'open\r", "> ")
      assert.include(yield* type("\u0003", `^C\n${prompt}`), "^C\n")
      assert.strictEqual(yield* type("echo $V\r", `\nkept\n${prompt}`), `echo $V\nkept\n${prompt}`)
    })
  )

  it.scoped("SL-191: an open quote or here-document goes on in the next line, and the arrow recalls lines", () =>
    Effect.gen(function* () {
      const here = yield* Here
      const { prompt, type } = yield* attached(yield* here.create("--cwd", "/usr"))
      yield* type("echo 'a\r", "> ")
      assert.include(yield* type("b'\r", prompt), "\na\nb\n")
      yield* type("cat <<E\r", "> ")
      yield* type("text\r", "> ")
      assert.include(yield* type("E\r", prompt), "\ntext\n")
      assert.include(yield* type("\u001b[A\u001b[A\u001b[A\u001b[A\u001b[A\r", "> "), "echo 'a\n")
      assert.include(yield* type("c'\r", prompt), "\na\nc\n")
    })
  )

  it.scoped("SL-190: pasted lines run one after another, and the rest of a line waits in the editor", () =>
    Effect.gen(function* () {
      const here = yield* Here
      const { prompt, type } = yield* attached(yield* here.create("--cwd", "/usr"))
      const shown = yield* type("echo $((1+1))\recho $((2+2))\recho $((3", `${prompt}echo $((3`)
      assert.include(shown, "\necho $((3<cleared>2\n<cleared>4\n")
      assert.include(yield* type("+3))\r", prompt), "\n6\n")
    })
  )

  it.scoped("SL-192: exit closes the shell, says so, and gives its code", () =>
    Effect.gen(function* () {
      const here = yield* Here
      const id = yield* here.create("--cwd", "/usr")
      const { running, type } = yield* attached(id)
      assert.strictEqual(yield* type("exit 7\r", "exited\n"), `exit 7\n${id} is closed: exited\n`)
      assert.strictEqual(yield* ended(running), 7)
      assert.strictEqual((yield* here.shell(["attach", id])).code, 3)
    })
  )

  it.scoped("SL-193: without a terminal the lines of stdin run, and the exit code is that of the last command", () =>
    Effect.gen(function* () {
      const here = yield* Here
      const id = yield* here.create("--cwd", "/usr", "--deny", "touch")
      const attach = (input: string) =>
        Effect.map(here.shell(["attach", id], { input }), ({ code, stderr, stdout }) => [code, stdout, stderr])
      const script = "cd /\n\npwd\necho 'two\nlines' >&2\ncat <<E\nhere\nE\ncat\n(exit 4)"
      assert.deepStrictEqual(yield* attach(script), [4, "/\nhere\n", "two\nlines\n"])
      const [code, stdout, stderr] = yield* attach("touch x\necho on\n")
      assert.deepStrictEqual([code, stdout], [0, "on\n"])
      assert.match(String(stderr), /^daybook: the shell's policy blocks the command: /)
      assert.deepStrictEqual((yield* attach("touch x")).slice(0, 2), [1, ""])
      assert.deepStrictEqual((yield* attach("echo 'open\n")).slice(0, 2), [2, ""])
      assert.deepStrictEqual(yield* attach("exit 5\necho never\n"), [5, "", `${id} is closed: exited\n`])
    })
  )

  it.scoped("SL-193: Ctrl-C ends the commands of stdin with the running one", () =>
    Effect.gen(function* () {
      const here = yield* Here
      const id = yield* here.create("--cwd", "/usr")
      const running = yield* here.startShell(["attach", id], { input: "echo begun; sleep 1001.2\necho never\n" })
      yield* running.until("stdout", (text) => text === "begun\n")
      yield* running.signal("SIGINT")
      const { code, stdout } = yield* running.ended
      assert.deepStrictEqual([code, stdout], [130, "begun\n"])
      assert.strictEqual((yield* here.shell(["exec", id, "echo here"])).stdout, "here\n")
    })
  )
})
