/** The life of the host of live shells: its start, its end, and who reaches it. What it is used for: `ShellVerbs.process.test.ts`. */
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { connect, type Socket } from "node:net"
import { dirname, join } from "node:path"
import { assert, beforeAll, it } from "@effect/vitest"
import * as SocketServer from "@effect/platform/SocketServer"
import { Deferred, Effect, Exit, Layer, Scope } from "effect"
import * as ShellHostProcess from "../../packages/cli/src/host/ShellHostProcess.ts"
import * as HostServer from "../../packages/shell/src/host/HostServer.ts"
import * as ShellRecord from "../../packages/shell/src/record/ShellRecord.ts"
import * as Shells from "../../packages/shell/src/Shells.ts"
import { begun, processes } from "../shell/support/Processes.ts"
import { build } from "./support/Bundle.ts"
import { gone } from "./support/Gone.ts"
import { type ShellPlace, shellPlace } from "./support/ShellHost.ts"
import { lacks } from "../support/Parts.ts"

beforeAll(() => void build())

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
    const socket = yield* ShellHostProcess.listen(place, scope)
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

it.scopedLive.skipIf(lacks("linux"))("SL-179: a host does not keep the folder that it was started in", () =>
  Effect.gen(function* () {
    const here = yield* shellPlace()
    const folder = join(here.root, "removed")
    mkdirSync(folder)
    assert.strictEqual((yield* here.shell(["create", "--cwd", "/usr"], { cwd: folder })).code, 0)
    assert.strictEqual(readlinkSync(`/proc/${yield* here.pid}/cwd`), here.root)
    rmSync(folder, { recursive: true })
    assert.strictEqual((yield* here.shell(["exec", "1_local", "pwd"])).stdout, "/usr\n")
    assert.strictEqual((yield* here.shell(["exec", yield* here.create(), "pwd"])).stdout, `${here.cwd}\n`)
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
    const one = yield* begun("sleep 1000.5")
    const two = yield* begun("sleep 1000.6")
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

it.scopedLive.skipIf(lacks("bubblewrap"))(
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
      // A link to the folder is the same folder.
      symlinkSync(dirname(here.database), join(here.root, "link"))
      const linked = { DAYBOOK_DB: join(here.root, "link", "daybook.sqlite") }
      assert.match((yield* here.shell(["list"], { env: linked })).stdout, /^1_local /)
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

it.scopedLive.skipIf(lacks("bubblewrap"))("SL-205: exec says which bound of its sandbox ended a shell", () =>
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
