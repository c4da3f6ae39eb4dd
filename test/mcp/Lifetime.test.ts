import { existsSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Logger, Queue, Redacted, Scope, TestClock } from "effect"
import { temporaryFolder } from "../tools/Workbench.ts"
import { makeLifeline } from "../tools/Lifeline.ts"
import { freePort, makeMcp, obedient, obedientHttp, silent } from "./support/Servers.ts"

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

  it.scoped("MC-8: one that forgot the session is connected anew", () =>
    Effect.gen(function* () {
      const server = yield* obedientHttp(0, "plain")
      const { fail, mcp, said, until } = yield* makeMcp({ own: { url: server.url } })
      yield* mcp.ready
      const pid = yield* said("own_pid")
      yield* server.forget
      const forgotten = yield* fail("own_echo", {})
      assert.strictEqual(forgotten.type, "tool.execution")
      assert.include(forgotten.message, "is being connected again")
      yield* until("own", failed)
      yield* TestClock.adjust("1 second")
      yield* until("own", connected)
      assert.strictEqual(yield* said("own_pid"), pid)
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

describe("a server that cannot be reached", () => {
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
      assert.match(
        (yield* until("nobody", failed)).details ?? "",
        /^it cannot be reached: fetch failed: .*ECONNREFUSED/
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

  it.scoped("MC-4: its end ends their processes, even one that does not listen", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const lifeline = yield* makeLifeline(folder)
      const deaf =
        "process.on('SIGTERM', () => {}); setInterval(() => {}, 1e6);" +
        `require('node:fs').writeSync(require('node:fs').openSync(${JSON.stringify(join(folder, "life"))}, 'w'), 'here')`
      const scope = yield* Scope.make()
      yield* Scope.extend(makeMcp({ deaf: { command: process.execPath, args: ["-e", deaf] } }), scope)
      assert.strictEqual(yield* lifeline.first, "here")
      yield* Scope.close(scope, Exit.void)
      yield* lifeline.ended
    })
  )
})
