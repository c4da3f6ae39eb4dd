/**
 * The host of live shells and the verbs that use it, as real processes. The tests share one host, unless they end it.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { connect, type Socket } from "node:net"
import { dirname, join } from "node:path"
import { assert, beforeAll, it, layer } from "@effect/vitest"
import * as SocketServer from "@effect/platform/SocketServer"
import { Context, Deferred, Effect, Exit, Layer, Scope } from "effect"
import * as ShellHostSocket from "../../packages/cli/src/host/ShellHostSocket.ts"
import * as HostServer from "../../packages/shell/src/host/HostServer.ts"
import * as ShellRecord from "../../packages/shell/src/record/ShellRecord.ts"
import * as Shells from "../../packages/shell/src/Shells.ts"
import { processes } from "../shell/support/Processes.ts"
import { build } from "./support/Bundle.ts"
import { gone } from "./support/Gone.ts"
import { jsonLines } from "./support/Process.ts"
import { type ShellPlace, shellPlace } from "./support/ShellHost.ts"

beforeAll(() => void build())

class Here extends Context.Tag("test/Here")<Here, ShellPlace>() {}

/** A host of a place in this process; `onConnection` is called for each client. */
const hostOf = (
  here: ShellPlace,
  { pid, version }: { readonly pid: number; readonly version: string },
  onConnection: () => void = () => undefined
) =>
  Effect.gen(function* () {
    const scope = yield* Effect.scope
    const place = { root: join(here.root, "data"), name: "shell-host/socket" }
    const shells = Effect.provide(Shells.Shells, yield* Layer.build(Layer.provide(Shells.layer(), ShellRecord.none)))
    const hello = { version, pid, database: here.database }
    const server = yield* HostServer.make({ hello, linger: "1 minute", shells: yield* shells })
    const socket = yield* ShellHostSocket.listen(place, scope)
    yield* Effect.provideService(server.serve, SocketServer.SocketServer, {
      ...socket,
      run: (handler) =>
        socket.run((connection) => {
          onConnection()
          return handler(connection)
        })
    })
    return server
  })

const { version } = JSON.parse(readFileSync(new URL("../../packages/cli/package.json", import.meta.url), "utf8")) as {
  readonly version: string
}

/** Processes of hosts of this worker's bundle. */
const hosts = Effect.suspend(() => processes(`${process.execPath} ${build().bin} shell host`))

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
      assert.strictEqual((yield* processes("sleep 1000.1")).length, 1)
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
      const [sleep = 0] = yield* processes("sleep 1000.2")
      yield* running.signal("SIGKILL")
      yield* gone(sleep)
      assert.strictEqual((yield* here.shell(["exec", id, "echo here"])).stdout, "here\n")
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
      assert.match(stdout, new RegExp(`^${made.stdout.slice(0, 12)}  [0-9-]{10} [0-9:]{8}  asked  before\n$`))
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
        [["--ssh", "u@-h", "--agent"], /^daybook: host: expected a name/],
        [["--ssh", "u@h:70000", "--agent"], /^daybook: port: expected/],
        [["--docker", "--privileged"], /^daybook: container: expected/],
        [["--docker", "c", "--cwd", "relative"], /^daybook: cwd: expected an absolute path/],
        [["--cwd", "/nowhere"], /^daybook: --cwd: \/nowhere cannot be entered \(ENOENT\)\n$/],
        [["--deny", "/bin/rm"], /^daybook: deny\[0\]: expected the name of a command/],
        [["--ignore", "x"], /^daybook: --ignore needs --workspace\n$/],
        [["--workspace", "/"], /^daybook: workspace: expected an absolute path below the root folder\n$/],
        [["extra"], /^daybook: shell create: "extra" is one word too many\n$/]
      ] as const) {
        const { code, stderr, stdout } = yield* here.shell(["create", ...words])
        assert.deepStrictEqual([code, stdout], [2, ""], words.join(" "))
        assert.match(stderr, expected)
      }
      assert.strictEqual(Number.parseInt(yield* here.create(), 10), before + 1)
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

it.scopedLive("SL-170: without a host, list prints nothing, the other verbs end with 3, and none starts one", () =>
  Effect.gen(function* () {
    const here = yield* shellPlace()
    for (const words of [["list"], ["list", "--json"], ["destroy", "--all"]]) {
      const { code, stderr, stdout } = yield* here.shell(words)
      assert.deepStrictEqual([code, stdout, stderr], [0, "", ""])
    }
    for (const words of [
      ["exec", "1_local", "true"],
      ["destroy", "1_local"],
      ["checkpoints", "1_local"]
    ]) {
      const { code, stderr } = yield* here.shell(words)
      assert.deepStrictEqual([code, stderr], [3, "daybook: no live shell is open: daybook shell create opens one\n"])
    }
    assert.isFalse(existsSync(dirname(here.socket)))
  })
)

it.scopedLive("SL-171: creations at the same time start one host", () =>
  Effect.gen(function* () {
    const here = yield* shellPlace()
    const before = yield* hosts
    const created = yield* Effect.all(
      Array.from({ length: 4 }, () => here.shell(["create"])),
      { concurrency: "unbounded" }
    )
    const ids = created.map(({ stdout }) => stdout.trim()).toSorted()
    assert.deepStrictEqual(ids, ["1_local", "2_local", "3_local", "4_local"])
    const pid = yield* here.pid
    // Those that came second have ended, or are about to.
    for (const other of (yield* hosts).filter((each) => each !== pid && !before.includes(each))) yield* gone(other)
    assert.strictEqual(yield* here.pid, pid)
  })
)

it.scopedLive("SL-171: a second host is refused, and the log of earlier hosts is bounded", () =>
  Effect.gen(function* () {
    const here = yield* shellPlace()
    mkdirSync(dirname(here.socket), { recursive: true, mode: 0o700 })
    writeFileSync(here.log, "x".repeat(1_100_000))
    yield* here.create()
    assert.strictEqual(statSync(here.log).size, 0)
    const { code, stderr } = yield* here.shell(["host"])
    assert.deepStrictEqual([code, stderr], [4, `daybook: a host listens at ${here.socket}\n`])
    assert.strictEqual(yield* here.create(), "2_local")
  })
)

it.scopedLive("SL-171: a folder whose path is too long for a socket is refused by name", () =>
  Effect.gen(function* () {
    const here = yield* shellPlace()
    const env = { DAYBOOK_DB: join(here.root, "x".repeat(100), "daybook.sqlite") }
    for (const words of [["create"], ["list"]]) {
      const { code, stderr } = yield* here.shell(words, { env })
      assert.strictEqual(code, 6)
      assert.match(stderr, /a socket path may have 10\d bytes, and this has \d+: set DAYBOOK_DB to a shorter path\n$/)
    }
  })
)

it.scopedLive("SL-176: a killed host leaves no process of its shells, and the next creation starts another one", () =>
  Effect.gen(function* () {
    const here = yield* shellPlace()
    const id = yield* here.create()
    yield* here.shell(["exec", id, "sleep 1000.5 >/dev/null 2>&1 & setsid sleep 1000.6 >/dev/null 2>&1 &"])
    const pid = yield* here.pid
    const [one = 0] = yield* processes("sleep 1000.5")
    const [two = 0] = yield* processes("sleep 1000.6")
    const running = yield* here.startShell(["exec", id, "echo begun; sleep 1000.7"])
    yield* running.until("stdout", (text) => text === "begun\n")
    process.kill(pid, "SIGKILL")
    const ended = yield* running.ended
    assert.deepStrictEqual(
      [ended.code, ended.stderr],
      [1, "daybook: the host of the shells is gone: the connection ended\n"]
    )
    yield* gone(one)
    yield* gone(two)
    assert.isTrue(existsSync(here.socket))
    assert.strictEqual((yield* here.shell(["list"])).stdout, "")
    assert.strictEqual(yield* here.create(), "1_local")
    assert.notStrictEqual(yield* here.pid, pid)
  })
)

it.scopedLive("SL-177: a host ends after its last shell, and leaves no socket", () =>
  Effect.gen(function* () {
    const here = yield* shellPlace({ DAYBOOK_SHELL_LINGER_MS: "300" })
    const [one, two] = [yield* here.create(), yield* here.create()]
    const pid = yield* here.pid
    yield* here.shell(["destroy", one])
    assert.strictEqual((yield* here.shell(["exec", two, "sleep 0.6; echo here"])).stdout, "here\n")
    yield* here.shell(["destroy", two])
    yield* gone(pid)
    assert.isFalse(existsSync(here.socket))
    assert.strictEqual(yield* here.create(), "1_local")
  })
)

it.scopedLive("SL-177: a signal closes the shells with the reason shutdown, and running commands learn it", () =>
  Effect.gen(function* () {
    const here = yield* shellPlace()
    const id = yield* here.create()
    const running = yield* here.startShell(["exec", id, "echo begun; sleep 1000.8"])
    yield* running.until("stdout", (text) => text === "begun\n")
    const pid = yield* here.pid
    process.kill(pid, "SIGTERM")
    const { stderr } = yield* running.ended
    assert.strictEqual(stderr, `${id} is closed: shutdown\n`)
    yield* gone(pid)
    assert.deepStrictEqual(yield* processes("sleep 1000.8"), [])
    assert.isFalse(existsSync(here.socket))
    assert.include((yield* here.shell(["watch"])).stdout, `[${id}] closed: shutdown\n`)
    assert.strictEqual(readFileSync(here.log, "utf8"), "")
  })
)

it.scopedLive.skipIf(process.platform !== "linux")(
  "SL-188: a sandboxed shell may write the folder that it was created in, and cannot reach the host",
  () =>
    Effect.gen(function* () {
      const here = yield* shellPlace()
      const config = join(here.root, "config.yaml")
      writeFileSync(config, "sandbox: {mode: on}\n")
      const env = { DAYBOOK_CONFIG: config }
      const created = yield* here.shell(["create"], { env })
      assert.deepStrictEqual([created.code, created.stderr], [0, ""])
      const run = (command: string) => here.shell(["exec", created.stdout.trim(), command])
      assert.strictEqual((yield* run("echo fine >file; cat file")).stdout, "fine\n")
      yield* run(`echo wrong >'${here.root}/file'`)
      assert.deepStrictEqual(
        [here.cwd, here.root].map((folder) => existsSync(join(folder, "file"))),
        [true, false]
      )
      assert.strictEqual((yield* run(`ls -A '${dirname(here.socket)}'`)).stdout, "")
    })
)

it.scopedLive("SL-188: a sandbox that is made before a host runs hides where it will listen", () =>
  Effect.gen(function* () {
    const here = yield* shellPlace()
    writeFileSync(join(here.root, "config.yaml"), "sandbox: {mode: on}\n")
    const { code } = yield* here.run(["prompt", "hello"], { env: { DAYBOOK_CONFIG: join(here.root, "config.yaml") } })
    assert.strictEqual(code, 0)
    assert.isTrue(existsSync(dirname(here.socket)))
  })
)

it.scopedLive(
  "SL-172: a host of another version, or of another database, is refused, and the error says what to do",
  () =>
    Effect.gen(function* () {
      const here = yield* shellPlace()
      yield* here.create()
      const pid = yield* here.pid
      const database = join(dirname(here.database), "other.sqlite")
      for (const words of [["list"], ["create"], ["exec", "1_local", "true"]]) {
        const { code, stderr, stdout } = yield* here.shell(words, { env: { DAYBOOK_DB: database } })
        assert.deepStrictEqual([code, stdout], [4, ""])
        assert.include(stderr, `records in ${here.database}: set DAYBOOK_DB to that file, or end it`)
        assert.include(stderr, `with: kill ${pid}\n`)
      }
      const old = yield* shellPlace()
      yield* hostOf(old, { version: "0.0.9", pid: 7 })
      const { code, stderr } = yield* old.shell(["list"])
      assert.deepStrictEqual(
        [code, stderr],
        [
          4,
          "daybook: process 7, of daybook 0.0.9, keeps the shells, and this is daybook 0.1.0: use that version, or end it " +
            "and its shells with: kill 7\n"
        ]
      )
    })
)

it.scopedLive("SL-177: a creation waits for the end of a host that is ending, and starts another one", () =>
  Effect.gen(function* () {
    const here = yield* shellPlace()
    const scope = yield* Scope.make()
    // It connects again when it has been refused.
    let connections = 0
    const again = yield* Deferred.make<void>()
    const onConnection = () => {
      connections += 1
      if (connections === 2) Deferred.unsafeDone(again, Effect.void)
    }
    const ending = yield* Scope.extend(hostOf(here, { version, pid: process.pid }, onConnection), scope)
    yield* ending.refuse
    const creating = yield* here.startShell(["create"])
    yield* Deferred.await(again)
    yield* Scope.close(scope, Exit.void)
    const { code, stderr, stdout } = yield* creating.ended
    assert.deepStrictEqual([code, stdout, stderr], [0, "1_local\n", ""])
    assert.notStrictEqual(yield* here.pid, process.pid)
  })
)

it.scopedLive("SL-174: connections beyond the limit are closed, and the end of another makes room", () =>
  Effect.gen(function* () {
    const here = yield* shellPlace()
    yield* hostOf(here, { version, pid: process.pid })
    const sockets = yield* Effect.forEach(Array.from({ length: 256 }), () =>
      Effect.acquireRelease(
        Effect.async<Socket>((resume) => {
          const socket = connect(here.socket, () => resume(Effect.succeed(socket)))
        }),
        (socket) => Effect.sync(() => socket.destroy())
      )
    )
    const refused = yield* here.shell(["list"])
    assert.deepStrictEqual([refused.code, refused.stdout], [6, ""])
    assert.include(refused.stderr, "it closes the connection: it is ending, or has too many")
    const [first] = sockets
    yield* Effect.async<void>((resume) => {
      first?.once("close", () => resume(Effect.void)).end()
    })
    assert.strictEqual((yield* here.shell(["list"])).code, 0)
  })
)

it.scopedLive.skipIf(process.platform !== "linux")("SL-205: exec says which bound of its sandbox ended a shell", () =>
  Effect.gen(function* () {
    const here = yield* shellPlace()
    const config = join(here.root, "config.yaml")
    writeFileSync(config, "sandbox: {mode: on, processes: 40}\n")
    const { stdout } = yield* here.shell(["create"], { env: { DAYBOOK_CONFIG: config } })
    const command = "for i in $(seq 60); do sleep 60 & done 2>/dev/null; wait"
    const { stderr } = yield* here.shell(["exec", stdout.trim(), command])
    assert.deepStrictEqual(stderr.split("\n").slice(-3), [
      "Stopped: the sandbox allows 40 processes and threads at a time.",
      `${stdout.trim()} is closed: processes`,
      ""
    ])
  })
)

it.scopedLive("SL-173: a host that cannot start says why, and its exit code is that of the creation", () =>
  Effect.gen(function* () {
    const here = yield* shellPlace()
    const config = join(here.root, "config.yaml")
    writeFileSync(config, "shell:\n  limit: none\n")
    const { code, stderr } = yield* here.shell(["create"], { env: { DAYBOOK_CONFIG: config } })
    assert.strictEqual(code, 2)
    assert.match(stderr, /^daybook: the host of the shells did not start: .*limit/)
    assert.deepStrictEqual(readdirSync(dirname(here.socket)), ["log"])
  })
)
