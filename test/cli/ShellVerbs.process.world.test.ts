/** The verbs that use live shells, as real processes. The tests share one host. */
import { existsSync, statSync } from "node:fs"
import { dirname, join } from "node:path"
import { assert, beforeAll, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { begun, processes } from "../shell/support/Processes.ts"
import { build } from "./support/Bundle.ts"
import { gone } from "./support/Gone.ts"
import { jsonLines } from "./support/Process.ts"
import { type ShellPlace, shellPlace } from "./support/ShellHost.ts"

beforeAll(() => void build())

class Here extends Context.Tag("test/Here")<Here, ShellPlace>() {}

layer(Layer.scoped(Here, shellPlace()), { excludeTestServices: true })("a host", (it) => {
  it.effect("SL-170: a shell outlives the process that created it, with its state", () =>
    Effect.gen(function* () {
      const here = yield* Here
      const id = yield* here.create()
      assert.match(id, /^\d+_local$/)
      assert.strictEqual((yield* here.shell(["exec", id, "cd /usr; V=kept"])).code, 0)
      const { code, stderr, stdout } = yield* here.shell(["exec", id, "--", "pwd; echo $V"])
      assert.deepStrictEqual([code, stdout, stderr], [0, "/usr\nkept\n", ""])
    })
  )

  it.effect("SL-171: only the user can use the socket, enter its folder and read the log", () =>
    Effect.gen(function* () {
      const here = yield* Here
      yield* here.create()
      const mode = (path: string) => (statSync(path).mode & 0o777).toString(8)
      assert.deepStrictEqual([mode(dirname(here.socket)), mode(here.socket), mode(here.log)], ["700", "600", "600"])
    })
  )

  it.effect("SL-180: create prints the id alone, and starts in the folder of its caller or of --cwd", () =>
    Effect.gen(function* () {
      const here = yield* Here
      const created = yield* here.shell(["create", "--json"])
      const id = String(jsonLines(created.stdout)[0]?.["session_id"])
      assert.strictEqual(created.stdout, `{"session_id":"${id}"}\n`)
      const pwd = (shell: string) => Effect.map(here.shell(["exec", shell, "pwd"]), ({ stdout }) => stdout)
      assert.strictEqual(yield* pwd(id), `${here.cwd}\n`)
      assert.strictEqual(yield* pwd(yield* here.create("--cwd", "/usr/lib/..")), "/usr\n")
    })
  )

  it.effect("SL-182, SL-194: output and errors go to stdout and stderr, and the exit code is the command's", () =>
    Effect.gen(function* () {
      const here = yield* Here
      const id = yield* here.create()
      const ended = (...words: ReadonlyArray<string>) =>
        Effect.map(here.shell(["exec", id, ...words]), ({ code, stderr, stdout }) => [code, stdout, stderr])
      assert.deepStrictEqual(yield* ended("--", "printf 'no newline'; echo err >&2; (exit 3)"), [
        3,
        "no newline",
        "err\n"
      ])
      assert.deepStrictEqual(yield* ended("--", "echo", "-n", "a  b", "$((1+1))"), [0, "a b 2", ""])
      assert.deepStrictEqual(yield* ended("--", "kill -9 $BASHPID"), [137, "", `${id} is closed: exited\n`])
      const other = yield* here.create()
      assert.deepStrictEqual(
        yield* Effect.map(here.shell(["exec", other, "echo exit >&2; (exit 1)"]), ({ stderr }) => stderr),
        "exit\n"
      )
      const farewell = yield* here.shell(["exec", other, "echo last >&2; exit 6"])
      assert.deepStrictEqual([farewell.code, farewell.stderr], [6, `last\n${other} is closed: exited\n`])
      assert.deepStrictEqual(yield* ended("true"), [
        3,
        "",
        `daybook: shell ${id} is closed (exited): create another one\n`
      ])
      assert.deepStrictEqual(yield* Effect.map(here.shell(["exec", "99_local", "true"]), ({ code }) => code), 3)
      assert.deepStrictEqual((yield* here.shell(["exec", "99_local"])).code, 2)
    })
  )

  it.scoped("SL-183: what a command prints appears while it runs, and Ctrl-C stops it and keeps the shell", () =>
    Effect.gen(function* () {
      const here = yield* Here
      const id = yield* here.create()
      yield* here.shell(["exec", id, "V=kept"])
      const running = yield* here.startShell(["exec", id, "echo begun; sleep 1000.1; echo never"])
      yield* running.until("stdout", (text) => text === "begun\n")
      yield* begun("sleep 1000.1")
      yield* running.signal("SIGINT")
      const { code, stderr, stdout } = yield* running.ended
      assert.deepStrictEqual([code, stdout, stderr], [130, "begun\n", ""])
      assert.deepStrictEqual(yield* processes("sleep 1000.1"), [])
      assert.strictEqual((yield* here.shell(["exec", id, "echo $V"])).stdout, "kept\n")
    })
  )

  it.scoped("SL-183: a killed client's command is stopped, and the shell stays", () =>
    Effect.gen(function* () {
      const here = yield* Here
      const id = yield* here.create()
      const running = yield* here.startShell(["exec", id, "echo begun; sleep 1000.2"])
      yield* running.until("stdout", (text) => text === "begun\n")
      const sleep = yield* begun("sleep 1000.2")
      yield* running.signal("SIGKILL")
      yield* gone(sleep)
      assert.strictEqual((yield* here.shell(["exec", id, "echo here"])).stdout, "here\n")
    })
  )

  it.scoped("SL-178, SL-183: a client that reads nothing makes the command wait, and its end stops the command", () =>
    Effect.gen(function* () {
      const here = yield* Here
      const id = yield* here.create()
      const running = yield* here.startShell(["exec", id, "yes SL-178"])
      yield* running.until("stdout", (text) => text.startsWith("SL-178\n"))
      yield* running.signal("SIGSTOP")
      const [yes = 0] = yield* processes("yes SL-178")
      // The shell has not ended when another one has run a command.
      assert.strictEqual((yield* here.shell(["exec", yield* here.create(), "echo other"])).stdout, "other\n")
      yield* running.signal("SIGKILL")
      yield* gone(yes)
      assert.strictEqual((yield* here.shell(["exec", id, "echo here"])).stdout, "here\n")
    })
  )

  it.scoped("SL-183: a reader that ends, such as head, stops the command without an error", () =>
    Effect.gen(function* () {
      const here = yield* Here
      const id = yield* here.create()
      const running = yield* here.startShell(["exec", id, "yes SL-183"])
      yield* running.until("stdout", (text) => text.startsWith("SL-183\n"))
      const [yes = 0] = yield* processes("yes SL-183")
      yield* running.closeStdout
      const { code, stderr } = yield* running.ended
      assert.deepStrictEqual([code, stderr], [0, ""])
      yield* gone(yes)
    })
  )

  it.effect("SL-184: a budget keeps its part, --timeout stops, --stdin sends the input, --json is the result", () =>
    Effect.gen(function* () {
      const here = yield* Here
      const id = yield* here.create()
      const exec = (words: ReadonlyArray<string>, input = "") => here.shell(["exec", id, ...words], { input })
      const part = yield* exec(["--grep", "7$", "--context", "1", "--head", "3", "--", "seq", "30"])
      assert.strictEqual(part.stdout, "[... 5 lines left out ...]\n6\n7\n8\n[... 22 lines left out ...]\n")
      assert.match(part.stderr, /^some output is left out here; all of it: daybook shell output \S+\n$/)
      const late = yield* exec(["--timeout", "1", "--", "sleep 1000.3"])
      assert.deepStrictEqual([late.code, late.stderr], [124, "the command was stopped after 1 s\n"])
      const words = "é, ".repeat(100_000)
      assert.strictEqual((yield* exec(["--stdin", "--", "cat"], words)).stdout, words)
      assert.strictEqual((yield* exec(["--", "cat"], words)).stdout, "")
      const whole = yield* exec(["--json", "--", "echo a; (exit 2)"])
      assert.strictEqual(whole.code, 2)
      const [result] = jsonLines(whole.stdout)
      assert.deepStrictEqual(
        { ...result, duration_ms: 0 },
        { stdout: "a", stderr: "", exit_code: 2, duration_ms: 0, cwd: here.cwd, truncated: false }
      )
    })
  )

  it.effect("SL-185: list shows the open shells, and destroy closes them with what they run", () =>
    Effect.gen(function* () {
      const here = yield* Here
      const [one, two] = [yield* here.create("--cwd", "/usr"), yield* here.create("--cwd", "/usr")]
      yield* here.shell(["exec", one, "sleep 1000.4 >/dev/null 2>&1 &"])
      const { stdout } = yield* here.shell(["list"])
      assert.match(stdout, new RegExp(`^${one} +local +/usr +idle \\d+ s$`, "m"))
      const listed = jsonLines((yield* here.shell(["list", "--json"])).stdout).map(({ session_id: id }) => id)
      assert.includeMembers(listed, [one, two])
      const ended = yield* here.shell(["destroy", one, "99_local", two])
      assert.deepStrictEqual(
        [ended.code, ended.stderr],
        [3, `${one} is closed\n${two} is closed\ndaybook: there is no open shell 99_local\n`]
      )
      assert.deepStrictEqual(yield* processes("sleep 1000.4"), [])
      const left = jsonLines((yield* here.shell(["list", "--json"])).stdout).map(({ session_id: id }) => id)
      assert.notIncludeMembers(left, [one, two])
    })
  )

  it.effect("SL-187: checkpoints are made, listed and restored with the exact account", () =>
    Effect.gen(function* () {
      const here = yield* Here
      const folder = join(here.root, "workspace")
      yield* here.shell(["exec", yield* here.create(), `mkdir '${folder}'`])
      const id = yield* here.create("--cwd", folder, "--workspace", folder, "--no-auto-checkpoint")
      yield* here.shell(["exec", id, "echo one >a; echo same >b"])
      const made = yield* here.shell(["checkpoint", id, "before"])
      assert.match(made.stdout, /^[0-9a-f]{40}\n$/)
      yield* here.shell(["exec", id, "echo two >a; echo new >c; rm b"])
      const { stdout } = yield* here.shell(["checkpoints", id])
      assert.match(stdout, new RegExp(`^${made.stdout.slice(0, 12)}  [0-9-]{10} [0-9:]{8}Z  asked  before\n$`))
      const restored = yield* here.shell(["restore", id, made.stdout.slice(0, 12)])
      assert.match(
        restored.stdout,
        /^restored [0-9a-f]{12}: 3 files changed\n\+ b\n~ a\n- c\nthe state before is checkpoint /
      )
      assert.strictEqual((yield* here.shell(["exec", id, "cat a b; ls"])).stdout, "one\nsame\na\nb\n")
      const none = yield* here.shell(["checkpoint", yield* here.create()])
      assert.deepStrictEqual([none.code, none.stdout], [1, ""])
      assert.strictEqual((yield* here.shell(["restore", id, "beef"])).code, 3)
    })
  )

  it.effect("SL-186: output prints the whole of a stream from disk, also when the shell is closed", () =>
    Effect.gen(function* () {
      const here = yield* Here
      const id = yield* here.create()
      const part = yield* here.shell(["exec", id, "--json", "--max-chars", "10", "--", "seq 400000; echo érror >&2"])
      const handle = String(jsonLines(part.stdout)[0]?.["output"])
      yield* here.shell(["destroy", id])
      const whole = Array.from({ length: 400_000 }, (_, index) => `${index + 1}\n`).join("")
      assert.strictEqual((yield* here.shell(["output", handle])).stdout, whole)
      const pages = jsonLines((yield* here.shell(["output", handle, "--json"])).stdout)
      assert.strictEqual(pages.map(({ text }) => text).join(""), whole)
      assert.isAbove(pages.length, 1)
      for (const other of ["1_local.9.beef", "../../etc/passwd"]) {
        const { code, stdout } = yield* here.shell(["output", other])
        assert.deepStrictEqual([code, stdout], [3, ""])
      }
    })
  )

  it.effect("SL-53: lists of a creation refuse commands before they run", () =>
    Effect.gen(function* () {
      const here = yield* Here
      const id = yield* here.create("--deny", "touch, mv")
      const blocked = yield* here.shell(["exec", id, "touch x"])
      assert.deepStrictEqual([blocked.code, blocked.stdout], [1, ""])
      assert.match(blocked.stderr, /^daybook: the shell's policy blocks the command: /)
      assert.isFalse(existsSync(join(here.cwd, "x")))
    })
  )

  it.effect("SL-181: options that do not fit are refused with exit code 2, and open no shell", () =>
    Effect.gen(function* () {
      const here = yield* Here
      const before = Number.parseInt(yield* here.create(), 10)
      for (const [words, expected] of [
        [["--ssh", "nobody"], /^daybook: --ssh: expected USER@HOST or USER@HOST:PORT, got "nobody"\n$/],
        [["--ssh", "u@h", "--docker", "c"], /^daybook: --ssh and --docker exclude each other\n$/],
        [["--agent"], /^daybook: --agent needs --ssh\n$/],
        [["--docker", "c", "--key", "k"], /^daybook: --key needs --ssh\n$/],
        [["--user", "u"], /^daybook: --user needs --docker\n$/],
        [["--ssh", "u@h", "--password", "--password-stdin"], /exclude each other\n$/],
        [["--ssh", "u@h"], /^daybook: no terminal to ask for the password: give --password-stdin\n$/],
        [["--ssh", "u@h", "--password-stdin"], /^daybook: expected the password as the first line of stdin\n$/],
        [["--ssh", "u@-h", "--agent"], /^daybook: --ssh: expected a host name/],
        [["--ssh", "u@h:70000", "--agent"], /^daybook: --ssh: expected a number/],
        [["--docker", "--privileged"], /^daybook: --docker: expected/],
        [["--docker", "c", "--cwd", "relative"], /^daybook: --cwd: expected an absolute path/],
        [["--cwd", "/nowhere"], /^daybook: --cwd: \/nowhere cannot be entered \(ENOENT\)\n$/],
        [["--deny", "/bin/rm"], /^daybook: --deny: expected the name of a command/],
        [["--ignore", "x"], /^daybook: --ignore needs --workspace\n$/],
        [["--workspace", "/"], /^daybook: --workspace: expected an absolute path below the root folder\n$/],
        [["extra"], /^daybook: shell create: unexpected argument "extra"\n$/]
      ] as const) {
        const { code, stderr, stdout } = yield* here.shell(["create", ...words])
        assert.deepStrictEqual([code, stdout], [2, ""], words.join(" "))
        assert.match(stderr, expected)
      }
      assert.strictEqual(Number.parseInt(yield* here.create(), 10), before + 1)
    })
  )

  it.effect("SL-180: a container that is not there is an error of the transport, with exit code 1", () =>
    Effect.gen(function* () {
      const here = yield* Here
      const { code, stderr, stdout } = yield* here.shell(["create", "--docker", "no-such-container", "--user", "app"])
      assert.deepStrictEqual([code, stdout], [1, ""])
      assert.match(stderr, /^daybook: docker: /)
    })
  )

  it.effect("SL-179: what the shells ran is recorded in a session that watch shows", () =>
    Effect.gen(function* () {
      const here = yield* Here
      const id = yield* here.create()
      yield* here.shell(["exec", id, "echo recorded"])
      const { stdout } = yield* here.shell(["watch", "daybook shell"])
      assert.include(stdout, `[${id}] ${here.cwd} $ echo recorded\nexit 0 in `)
    })
  )
})
