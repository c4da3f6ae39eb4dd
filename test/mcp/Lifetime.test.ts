import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Logger, Queue, Redacted, Scope, Struct, TestClock } from "effect"
import { temporaryFolder } from "../tools/Workbench.ts"
import { makeLifeline } from "../tools/Lifeline.ts"
import { freePort, makeMcp, moody, obedient, obedientHttp, silent } from "./support/Servers.ts"

const failed = ({ state }: { readonly state: string }) => state === "failed"
const connected = ({ state }: { readonly state: string }) => state === "connected"

/** What is logged while an effect runs. */
const logsOf = <A, E, R>(run: (logs: ReadonlyArray<string>) => Effect.Effect<A, E, R>) => {
  const logs: Array<string> = []
  const collector = Logger.make(({ cause, message }) => void logs.push(`${String(message)} ${String(cause)}`))
  return Effect.provide(run(logs), Logger.add(collector))
}

describe("a server's tools", () => {
  it.scoped("MC-14: are listed anew when the server says so; those that stayed are not withdrawn", () =>
    Effect.gen(function* () {
      const { agent, bench, call, fail, mcp, offered, said, until } = yield* makeMcp({ own: obedient })
      yield* mcp.ready
      const before = (yield* mcp.status)[0]?.tools ?? 0
      const tools = yield* bench.registry.materialize(agent)
      yield* said("own_change", {
        add: [{ name: "grown" }, { name: "more" }, { name: "pid", description: "Another process" }],
        remove: ["fail"]
      })
      yield* until("own", ({ tools: now }) => now === before + 1)
      const now = yield* offered
      assert.includeMembers(now, ["own_grown", "own_more", "own_pid", "own_echo"])
      assert.notInclude(now, "own_fail")
      // The server is there: what it took back is no tool any more.
      assert.include((yield* fail("own_fail", {})).message, 'there is no tool "own_fail"')
      assert.strictEqual(yield* said("own_grown"), "grown: {}")
      const old = (name: string) =>
        Effect.map(tools.settle({ name, input: {}, call: call() }), (settled) =>
          settled._tag === "Failure" ? settled.error.type : settled._tag
        )
      assert.strictEqual(yield* old("own_echo"), "Success")
      assert.strictEqual(yield* old("own_pid"), "tool.stale")
      assert.strictEqual(yield* old("own_fail"), "tool.stale")
    })
  )
})

describe("a lost server", () => {
  it.scoped(
    "MC-25: its tools go when its process is killed, a call says that it is being connected again, and they come back",
    () =>
      Effect.gen(function* () {
        const { agent, bench, call, fail, mcp, offered, said, until } = yield* makeMcp({ own: obedient })
        yield* mcp.ready
        const tools = yield* bench.registry.materialize(agent)
        const pid = Number(yield* said("own_pid"))
        process.kill(pid, "SIGKILL")
        const status = yield* until("own", failed)
        assert.strictEqual(status.details, "its process ended")
        assert.strictEqual(status.tools, 0)
        assert.deepStrictEqual(
          (yield* offered).filter((name) => name.startsWith("own_")),
          []
        )
        const stale = yield* tools.settle({ name: "own_pid", input: {}, call: call() })
        const away =
          /^MCP server "own" was lost and is being connected again; nothing was done\. Call "own_pid" again later/
        assert.strictEqual(stale._tag === "Failure" ? stale.error.type : "", "tool.stale")
        assert.match(stale._tag === "Failure" ? stale.error.message : "", away)
        const unknown = yield* fail("own_pid", {})
        assert.strictEqual(unknown.type, "tool.unknown")
        assert.match(unknown.message, away)
        assert.include((yield* fail("own_nothing", {})).message, 'there is no tool "own_nothing"')
        yield* TestClock.adjust("1 second")
        yield* until("own", connected)
        assert.notStrictEqual(Number(yield* said("own_pid")), pid)
      })
  )

  it.scoped("MC-8: the same over HTTP, when the server comes back at its address", () =>
    Effect.gen(function* () {
      const first = yield* obedientHttp()
      const { fail, mcp, said, until } = yield* makeMcp({ own: { url: first.url } })
      yield* mcp.ready
      const pid = yield* said("own_pid")
      yield* first.kill
      assert.include((yield* until("own", failed)).details, "it was lost")
      assert.strictEqual((yield* fail("own_pid", {})).type, "tool.unknown")
      yield* obedientHttp(first.port)
      yield* TestClock.adjust("1 second")
      yield* until("own", connected)
      assert.notStrictEqual(yield* said("own_pid"), pid)
    })
  )

  it.scoped("MC-8: one without a stream of its own is found lost by the next call", () =>
    Effect.gen(function* () {
      const first = yield* obedientHttp(0, "plain")
      const { fail, mcp, said, until } = yield* makeMcp({ own: { url: first.url } })
      yield* mcp.ready
      assert.strictEqual(yield* said("own_echo"), "echo: {}")
      yield* first.kill
      assert.include((yield* fail("own_echo", {})).message, 'MCP server "own": fetch failed')
      yield* until("own", failed)
    })
  )

  for (const how of ["plain", "rude"] as const) {
    it.scoped(`MC-540: one that forgot the session (${how}) gets a new one, and runs the refused calls once`, () =>
      Effect.gen(function* () {
        const server = yield* obedientHttp(0, how)
        const { agent, bench, call, mcp, said } = yield* makeMcp({ own: { url: server.url } })
        yield* mcp.ready
        const tools = yield* bench.registry.materialize(agent)
        const pid = yield* said("own_pid")
        for (let round = 0; round < 2; round++) {
          yield* server.forget
          // Calls of tools that were offered before, at the same time.
          const settled = yield* Effect.all(
            [1, 2, 3].map((said) => tools.settle({ name: "own_echo", input: { said: String(said) }, call: call() })),
            { concurrency: "unbounded" }
          )
          assert.deepStrictEqual(
            settled.map((each) => (each._tag === "Success" ? each.output.content : each.error)),
            [1, 2, 3].map((said) => [{ type: "text" as const, text: `echo: {"said":"${said}"}` }])
          )
        }
        assert.strictEqual(yield* said("own_pid"), pid)
        assert.strictEqual((yield* mcp.status)[0]?.state, "connected")
      })
    )
  }

  it.scoped("MC-540: a resource of one that forgot the session is read in a new one", () =>
    Effect.gen(function* () {
      const server = yield* obedientHttp(0, "plain")
      const { mcp } = yield* makeMcp({ own: { url: server.url } })
      yield* mcp.ready
      yield* server.forget
      assert.lengthOf(yield* mcp.readResource("own", "test://text"), 2)
    })
  )

  it.scoped("MC-25: a call that it was serving fails, and says that nobody knows what it did", () =>
    Effect.gen(function* () {
      const { fail, mcp, until } = yield* makeMcp({ own: obedient })
      yield* mcp.ready
      const error = yield* fail("own_die", {})
      assert.strictEqual(error.type, "tool.execution")
      assert.include(error.message, 'MCP server "own": it closed the connection before it answered')
      assert.include(error.message, "is being connected again. Whether the call did anything is not known")
      yield* until("own", failed)
    })
  )
})

describe("the tools of an earlier start", () => {
  /** Connects once, so that the list is kept. */
  const listed = Effect.gen(function* () {
    const folder = join(yield* temporaryFolder, "tools")
    yield* Effect.scoped(
      Effect.gen(function* () {
        const { mcp, until } = yield* makeMcp({ own: moody("well") }, {}, folder)
        yield* mcp.ready
        yield* until("own", connected)
      })
    )
    return folder
  })

  it.scoped("MC-541: are offered before the server has started, and their calls wait for it", () =>
    Effect.gen(function* () {
      const { agent, bench, call, ready } = yield* makeMcp({ own: moody("well") }, {}, yield* listed)
      yield* ready
      const tools = yield* bench.registry.materialize(agent)
      assert.include(tools.definitions.map(Struct.get("name")), "own_echo")
      const settled = yield* tools.settle({ name: "own_echo", input: { said: "hi" }, call: call() })
      assert.strictEqual(settled._tag, "Success")
    })
  )

  it.scoped("MC-541: hold no request up if the server hangs; a call fails with the reason, and the tools go", () =>
    Effect.gen(function* () {
      const { call, mcp, offered, ready, settle, until } = yield* makeMcp({ own: moody("silent") }, {}, yield* listed)
      yield* ready
      assert.include(yield* offered, "own_echo")
      assert.isAbove((yield* mcp.status)[0]?.tools ?? 0, 5)
      const [called, gone] = [
        yield* Effect.fork(settle("own_echo", {}, call())),
        yield* Effect.fork(until("own", failed))
      ]
      // The server's process starts in its own time; the ten seconds begin after that.
      const passing = yield* Effect.fork(Effect.forever(TestClock.adjust("10 seconds")))
      const settled = yield* Fiber.join(called)
      assert.include(
        settled._tag === "Failure" ? settled.error.message : "",
        "it did not answer within 10s; nothing was done"
      )
      yield* Fiber.join(gone)
      yield* Fiber.interrupt(passing)
      assert.notInclude((yield* offered).join(), "own_")
    })
  )

  it.scoped("MC-541: are replaced when the server lists them differently; a call that waited does nothing", () =>
    Effect.gen(function* () {
      const folder = yield* listed
      const file = join(folder, "own.json")
      assert.strictEqual(statSync(file).mode & 0o777, 0o600)
      writeFileSync(file, readFileSync(file, "utf8").replace("Says its input", "Says what it wants"))
      const { agent, bench, call, mcp, said } = yield* makeMcp({ own: moody("well") }, {}, folder)
      const tools = yield* bench.registry.materialize(agent)
      const settled = yield* tools.settle({ name: "own_echo", input: {}, call: call() })
      assert.strictEqual(settled._tag === "Failure" ? settled.error.type : "", "tool.stale")
      yield* mcp.ready
      assert.strictEqual(yield* said("own_echo"), "echo: {}")
    })
  )

  it.scoped("MC-541: of another configuration, or damaged, are none", () =>
    Effect.gen(function* () {
      const folder = yield* listed
      const other = yield* makeMcp({ own: { ...moody("silent"), args: ["-e", "process.stdin.resume()"] } }, {}, folder)
      assert.notInclude((yield* other.offered).join(), "own_")
      writeFileSync(join(folder, "own.json"), '{"version":1,')
      const damaged = yield* makeMcp({ own: moody("silent") }, {}, folder)
      assert.notInclude((yield* damaged.offered).join(), "own_")
    })
  )
})

describe("a server that cannot be reached", () => {
  it.scoped("MC-542: one that never answers holds requests up for three seconds once, and its status says so", () =>
    Effect.gen(function* () {
      const { mcp, ready } = yield* makeMcp({ silent })
      const waiting = yield* Effect.fork(ready)
      yield* TestClock.adjust("2900 millis")
      assert.isTrue((yield* Fiber.poll(waiting))._tag === "None")
      yield* TestClock.adjust("100 millis")
      yield* Fiber.join(waiting)
      assert.deepStrictEqual(yield* mcp.status, [
        { name: "silent", state: "connecting", tools: 0, details: "it has not answered within 3s" }
      ])
      // A later request does not wait.
      yield* ready
    })
  )

  it.scoped("MC-7: one that never answers holds nothing up for more than ten seconds", () =>
    Effect.gen(function* () {
      const { mcp, offered, said, until } = yield* makeMcp({ silent, own: obedient })
      const ready = yield* Effect.fork(mcp.ready)
      yield* until("own", connected)
      assert.strictEqual(yield* said("own_echo", { said: "hi" }), 'echo: {"said":"hi"}')
      assert.isTrue((yield* Fiber.poll(ready))._tag === "None")
      yield* TestClock.adjust("10 seconds")
      yield* Fiber.join(ready)
      assert.strictEqual((yield* until("silent", failed)).details, "it did not answer within 10s")
      assert.notInclude((yield* offered).join(), "silent_")
    })
  )

  it.scoped("MC-38, MC-8: the reason is said: no such command, one that ends at once, nobody at the address", () =>
    Effect.gen(function* () {
      const ends = { command: process.execPath, args: ["-e", "console.error('no key\\n'); process.exit(3)"] }
      const { mcp, until } = yield* makeMcp({
        missing: { command: "no-such-command" },
        ends,
        nobody: { url: `http://127.0.0.1:${yield* freePort}/mcp` }
      })
      yield* mcp.ready
      assert.strictEqual((yield* until("missing", failed)).details, 'there is no command "no-such-command"')
      assert.strictEqual(
        (yield* until("ends", failed)).details,
        "its process ended before it answered; its last output: no key"
      )
      assert.strictEqual(
        (yield* until("nobody", failed)).details,
        "it cannot be reached: the connection was refused (ECONNREFUSED)"
      )
    })
  )

  it.scoped("MC-9: neither status nor log has the secrets that a server was given", () =>
    logsOf((logs) =>
      Effect.gen(function* () {
        const leaks =
          "console.error('my key is ' + process.env.KEY + ' '.repeat(4000) + process.env.KEY); process.exit(1)"
        const { mcp, until } = yield* makeMcp({
          leaks: {
            command: process.execPath,
            args: ["-e", leaks],
            env: { KEY: Redacted.make("k".repeat(40) + "tail-of-it") }
          },
          address: {
            url: "http://user:password-1@127.0.0.1:1/mcp?key=token-22",
            headers: { authorization: "Bearer t0ken-33" }
          }
        })
        yield* mcp.ready
        yield* until("leaks", failed)
        yield* until("address", failed)
        const said = JSON.stringify([yield* mcp.status, logs])
        assert.include(said, "<redacted>")
        assert.include(logs.join(), 'MCP server "leaks" (failed)')
        for (const secret of ["tail-of-it", "kkk", "password-1", "token-22", "t0ken-33"])
          assert.notInclude(said, secret)
      })
    )
  )
})

describe("the scope of the servers", () => {
  it.scoped("MC-4: its end leaves no timer behind, also of a call that was under way", () =>
    Effect.gen(function* () {
      const timers = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length
      const { url } = yield* obedientHttp()
      const before = timers()
      const scope = yield* Scope.make()
      const its = yield* Scope.extend(makeMcp({ own: obedient, other: { url } }), scope)
      yield* its.mcp.ready
      for (const name of ["own_wait", "other_wait"]) {
        const reports = yield* Queue.unbounded<unknown>()
        yield* Effect.fork(its.settle(name, {}, { progress: (report) => Queue.offer(reports, report) }))
        yield* Queue.take(reports)
      }
      yield* Scope.close(scope, Exit.void)
      yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      assert.isAtMost(timers(), before)
    })
  )

  it.scoped("MC-33: the folder that a server starts in goes with the runtime, whatever was left there", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const lifeline = yield* makeLifeline(folder)
      const leaving =
        "const fs = require('node:fs'); fs.mkdirSync('left'); fs.writeFileSync('left/file', '');" +
        `fs.writeSync(fs.openSync(${JSON.stringify(join(folder, "life"))}, 'w'), process.cwd()); setInterval(() => {}, 1e6)`
      const scope = yield* Scope.make()
      const { mcp } = yield* Scope.extend(
        makeMcp({ leaving: { command: process.execPath, args: ["-e", leaving] } }),
        scope
      )
      assert.deepStrictEqual(yield* mcp.status, [{ name: "leaving", state: "connecting", tools: 0 }])
      const started = yield* lifeline.first
      assert.isTrue(existsSync(join(started, "left/file")))
      yield* Scope.close(scope, Exit.void)
      assert.isFalse(existsSync(started))
    })
  )
})
