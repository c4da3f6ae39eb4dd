/** When there is a sandbox, what it asks, and what happens where none can be made. */
import { spawn, spawnSync } from "node:child_process"
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  writeFileSync
} from "node:fs"
import { join, relative } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Option } from "effect"
import { layer, Sandbox, type SandboxSettings } from "../../packages/core/src/child/Sandbox.ts"
import type { Rule } from "../../packages/core/src/domain/Rule.ts"
import { everything, makeMcp } from "../mcp/support/Servers.ts"
import { temporaryFolder, textOf } from "../tools/Workbench.ts"
import { makeConfined, makeConfinedLive, unchecked } from "./Confined.ts"
import { lacks } from "../support/Parts.ts"

const repository = fileURLToPath(new URL("../..", import.meta.url))

/** Lasts as long as the scope. */
const sandboxOf = (settings: SandboxSettings) =>
  Effect.map(Layer.build(layer({ mode: "on", ...settings })), (context) => Context.get(context, Sandbox))

const makeServers = (servers: Parameters<typeof makeMcp>[0], settings: SandboxSettings) =>
  Effect.gen(function* () {
    const { bench, mcp, said } = yield* makeMcp(servers)
    yield* mcp.ready
    return { bench, said, status: yield* mcp.status }
  }).pipe((made) =>
    Effect.flatMap(Layer.build(layer({ mode: "on", ...settings })), (context) => Effect.provide(made, context))
  )

describe.skipIf(lacks("bubblewrap"))("the sandbox", () => {
  it.scopedLive(
    "SB-11: where bubblewrap is missing the command is refused, with what to install, and does not run",
    () =>
      Effect.gen(function* () {
        for (const make of [makeConfined, makeConfinedLive]) {
          const bench = yield* make({ program: "/nowhere/bwrap", autoAllow: true })
          const error = yield* bench.fail("bash", { command: "touch ran" })
          assert.strictEqual(error.type, "sandbox.unavailable")
          for (const words of ["bubblewrap is missing", "/nowhere/bwrap", "apt-get install bubblewrap"]) {
            assert.include(error.message, words)
          }
          assert.isFalse(existsSync(bench.at("ran")))
        }
      })
  )

  it.scopedLive(
    "SB-11: where bubblewrap cannot make a sandbox the command is refused, with its words, and does not run",
    () =>
      Effect.gen(function* () {
        const bench = yield* makeConfined((beside) => {
          const program = join(beside, "bwrap")
          writeFileSync(program, "#!/bin/sh\necho 'setting up uid map: Permission denied' >&2\nexit 1\n", {
            mode: 0o755
          })
          return { program }
        })
        const error = yield* bench.fail("bash", { command: "touch ran" })
        assert.strictEqual(error.type, "sandbox.unavailable")
        for (const words of ["cannot make one here", "uid map: Permission denied", "user.max_user_namespaces"]) {
          assert.include(error.message, words)
        }
        assert.isFalse(existsSync(bench.at("ran")))
      })
  )

  it.scopedLive("SB-12: with autoAllow a command that would be asked about runs; one that is denied does not", () =>
    Effect.gen(function* () {
      const rules: ReadonlyArray<Rule> = [
        { permission: "bash", resource: "*", verdict: "ask" },
        { permission: "bash", resource: "rm *", verdict: "deny" }
      ]
      const bench = yield* makeConfined({ autoAllow: true }, { rules })
      assert.strictEqual(textOf(yield* bench.run("echo free")), "free\n")
      assert.strictEqual((yield* bench.fail("bash", { command: "rm x" })).type, "permission.denied")
      assert.lengthOf(bench.asked, 0)
      yield* bench.fail("write", { path: "a", content: "x" })
      assert.lengthOf(bench.asked, 1)
    })
  )

  for (const settings of [{}, { autoAllow: false }, { mode: "off", autoAllow: true }] as const) {
    it.scopedLive(`SB-12: with ${JSON.stringify(settings)} a command is asked about as ever`, () =>
      Effect.gen(function* () {
        const bench = yield* makeConfined(settings, { rules: [] })
        assert.strictEqual((yield* bench.fail("bash", { command: "echo" })).type, "permission.denied")
        assert.lengthOf(bench.asked, 1)
      })
    )
  }

  it.scopedLive(
    "SB-13: a command that fails says that it ran in a sandbox and what it may do; one that succeeds does not",
    () =>
      Effect.gen(function* () {
        const bench = yield* makeConfined()
        const said = textOf(yield* bench.run("echo x > /usr/x"))
        for (const words of ["Read-only file system", "It ran in a sandbox", bench.folder, "no network"]) {
          assert.include(said, words)
        }
        assert.strictEqual(textOf(yield* bench.run("echo fine")), "fine\n")
      })
  )

  it.scopedLive(
    "SB-13: a folder outside, and a Location that holds the home folder, are refused before a question",
    () =>
      Effect.gen(function* () {
        const bench = yield* makeConfined({}, { rules: [] })
        const outside = yield* bench.fail("bash", { command: "pwd", workdir: bench.outside })
        assert.strictEqual(outside.type, "sandbox.denied")
        const home = process.env["HOME"]
        yield* Effect.addFinalizer(() => Effect.sync(() => (process.env["HOME"] = home)))
        process.env["HOME"] = join(bench.folder, "home/me")
        mkdirSync(process.env["HOME"], { recursive: true })
        const wide = yield* bench.fail("bash", { command: "pwd" })
        assert.strictEqual(wide.type, "sandbox.denied")
        assert.include(wide.message, "hides the home folder")
        assert.lengthOf(bench.asked, 0)
      })
  )

  it.scopedLive("SB-2: folders that the configuration names are as it says", () =>
    Effect.gen(function* () {
      const bench = yield* makeConfined((beside) => {
        for (const name of ["w", "r"]) mkdirSync(join(beside, name))
        writeFileSync(join(beside, "r/file"), "readable")
        return { writable: [join(beside, "w"), join(beside, "none")], readable: [join(beside, "r")] }
      })
      const said = yield* bench.said(
        `cd ${bench.beside}; echo x > w/new && echo wrote; cat r/file; { echo x > r/file; } 2>/dev/null && echo changed; ls`
      )
      assert.strictEqual(said, "wrote\nreadabler\nw\n")
      assert.strictEqual(readFileSync(join(bench.beside, "r/file"), "utf8"), "readable")
    })
  )

  it.scopedLive.skipIf(lacks("root"))("SB-1: needs no privilege: another user's sandbox holds as root's does", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      for (const name of ["project", "outside"]) {
        mkdirSync(join(folder, name))
        chownSync(join(folder, name), 65_534, 65_534)
      }
      chmodSync(folder, 0o755)
      const cwd = join(folder, "project")
      const env = { PATH: "/usr/bin:/bin", HOME: "/nonexistent" }
      const sandbox = yield* sandboxOf({ processes: 20 })
      const prefix = unchecked(Option.getOrThrow(yield* sandbox.confine({ cwd, writable: [cwd], env })))
      // Only the host's own user can open its filter: this user gets a copy.
      const copied = join(folder, "filter")
      writeFileSync(copied, readFileSync(prefix.find((word) => word.startsWith("/proc/")) ?? "no filter"))
      const command =
        `id -u; touch made; touch ../outside/x 2>/dev/null; ls ${folder}/outside /home 2>/dev/null; unshare -U true 2>/dev/null && echo did; ` +
        "sh -c 'i=0; while [ $i -lt 40 ]; do sleep 1 & i=$((i+1)); done' 2>&1 | grep -o 'Cannot fork'; grep CapEff /proc/self/status"
      const own = prefix.map((word) => (word.startsWith("/proc/") ? copied : word))
      const [file = "", ...args] = [...own, "/bin/bash", "-c", command]
      const said = yield* Effect.async<string>((resume) => {
        const child = spawn(file, args, {
          uid: 65_534,
          gid: 65_534,
          env,
          cwd: "/",
          stdio: ["ignore", "pipe", "inherit"]
        })
        let text = ""
        child.stdout.on("data", (chunk: Buffer) => (text += chunk.toString()))
        child.on("close", () => resume(Effect.succeed(text)))
        return Effect.sync(() => child.kill("SIGKILL"))
      })
      assert.strictEqual(said, "65534\nCannot fork\nCapEff:\t0000000000000000\n")
      assert.isTrue(existsSync(join(cwd, "made")))
      assert.isFalse(existsSync(join(folder, "outside/x")))
    })
  )

  it.scopedLive("SB-8: inherits no descriptor of the host but the standard streams", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      writeFileSync(join(folder, "secret"), "a secret")
      const secret = yield* Effect.acquireRelease(
        Effect.sync(() => openSync(join(folder, "secret"), "r")),
        (opened) => Effect.sync(() => closeSync(opened))
      )
      const env = { PATH: "/usr/bin:/bin", HOME: "/nonexistent" }
      const sandbox = yield* sandboxOf({})
      const prefix = unchecked(Option.getOrThrow(yield* sandbox.confine({ cwd: "/tmp", writable: [], env })))
      const [file = "", ...args] = [...prefix, "/bin/bash", "-c", "cat <&3; cat <&20; ls /proc/self/fd"]
      const stdio = Array.from({ length: 21 }, (_, at) =>
        at === 1 ? ("pipe" as const) : at === 3 || at === 20 ? secret : ("ignore" as const)
      )
      const { stdout } = spawnSync(file, args, { env, stdio, encoding: "utf8" })
      // The last is the folder that is listed.
      assert.strictEqual(stdout, "0\n1\n2\n3\n")
    })
  )

  it.scopedLive("SB-9: the bounds are 1,024 processes and 4,096 MiB, unless others are set", () =>
    Effect.gen(function* () {
      const limitsOf = Effect.fnUntraced(function* (settings: SandboxSettings) {
        const sandbox = yield* sandboxOf(settings)
        return Option.getOrThrow(yield* sandbox.confine({ cwd: "/tmp", writable: [], env: {} })).limits
      })
      assert.deepStrictEqual(yield* limitsOf({}), { processes: 1_024, bytes: 4_096 * 1_048_576 })
      assert.deepStrictEqual(yield* limitsOf({ processes: 7, memory: 50 }), { processes: 7, bytes: 50 * 1_048_576 })
    })
  )

  it.scopedLive("SB-15: what works in a world has the whole of it, and its names lead there from /", () =>
    Effect.gen(function* () {
      const [world, other] = [yield* temporaryFolder, yield* temporaryFolder]
      for (const name of ["work", "notes", "usr", ".git"]) mkdirSync(join(world, name))
      writeFileSync(join(world, "notes/a"), "a note")
      writeFileSync(join(world, ".env"), "secret")
      const cwd = join(world, "work")
      const env = { PATH: "/usr/bin:/bin", HOME: "/nonexistent" }
      const sandbox = yield* sandboxOf({ worlds: [other, join(world, "none"), world] })
      const prefix = unchecked(Option.getOrThrow(yield* sandbox.confine({ cwd, writable: [cwd], env })))
      const [file = "", ...args] = prefix
      const command =
        "cat /notes/a; echo new > /work/made; echo more > /notes/b; cat /.env; ls /usr/bin/env; " +
        `{ echo x > /.git/config; } && echo wrote; ls ${other}; true`
      const { status, stdout } = spawnSync(file, [...args, "/bin/bash", "-c", command], { env, encoding: "utf8" })
      assert.deepStrictEqual([status, stdout], [0, "a note/usr/bin/env\n"])
      assert.strictEqual(readFileSync(join(world, "work/made"), "utf8"), "new\n")
      assert.strictEqual(readFileSync(join(world, "notes/b"), "utf8"), "more\n")
      assert.deepStrictEqual(readdirSync(join(world, "usr")), [])
      const elsewhere = Option.getOrThrow(yield* sandbox.confine({ cwd: "/tmp", writable: [], env }))
      assert.notInclude(elsewhere.launch.prefix.join(" "), world)
    })
  )

  it.scopedLive("SB-14: an MCP server runs in a sandbox as well, with the environment of its configuration", () =>
    Effect.gen(function* () {
      const server = { ...everything, env: { GIVEN: "to it" } }
      const { said, status } = yield* makeServers({ every: server }, { readable: [repository] })
      assert.strictEqual(status[0]?.state, "connected")
      const env = JSON.parse(yield* said("every_get-env"))
      assert.strictEqual(env.GIVEN, "to it")
      assert.notProperty(env, "TMPDIR")
    })
  )

  it.scopedLive("SB-14: an MCP server's own sandbox comes first; what it hides is hidden, and an error says why", () =>
    Effect.gen(function* () {
      const beside = yield* temporaryFolder
      writeFileSync(join(beside, "secret"), "secret-beside")
      const shows = { command: "/bin/sh", args: ["-c", `cat ${beside}/secret >&2; exit 1`] }
      const { status } = yield* makeServers(
        {
          free: { ...shows, sandbox: { mode: "off" } },
          hidden: shows,
          named: { ...shows, sandbox: { readable: [beside] } },
          wide: { ...shows, cwd: "/" }
        },
        {}
      )
      const details = Object.fromEntries(status.map((each) => [each.name, each.details]))
      assert.include(details["free"], "secret-beside")
      assert.include(details["hidden"], "No such file")
      assert.include(details["named"], "secret-beside")
      assert.include(details["wide"], "hides the home folder")
    })
  )

  it.scopedLive("SB-18: an MCP server does not start if a folder was exchanged while its sandbox was made", () =>
    Effect.gen(function* () {
      const [beside, programs] = [yield* temporaryFolder, yield* temporaryFolder]
      const [folder, program] = [join(beside, "x"), join(programs, "bwrap")]
      mkdirSync(join(folder, ".git"), { recursive: true })
      mkdirSync(join(programs, ".git"))
      const move = `mv ${folder} ${beside}/y && ln -s ${relative(beside, programs)} ${folder}`
      const text = `#!/bin/sh\ncase "$*" in *" ${folder} "*) ${move} ;; esac\nexec /usr/bin/bwrap "$@"\n`
      writeFileSync(program, text, { mode: 0o755 })
      const server = { command: "/bin/sh", args: ["-c", `touch ${beside}/ran; echo begun >&2`], cwd: beside }
      const { status } = yield* makeServers(
        { moved: { ...server, sandbox: { writable: [beside], readable: [programs] } } },
        { program }
      )
      assert.strictEqual(status[0]?.state, "failed")
      assert.include(status[0]?.details, "was moved while the sandbox was made")
      assert.isFalse(existsSync(join(beside, "ran")))
    })
  )
})
