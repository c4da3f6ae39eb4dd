/**
 * Stops that something disturbs. Method: the transport is the local one, and each order to the keeper is seen before the keeper
 * reads it, so that the disturbance comes at that point.
 */
import { readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Scope } from "effect"
import { makeToken } from "../../../packages/shell/src/session/Dialogue.ts"
import * as Keeper from "../../../packages/shell/src/session/Keeper.ts"
import * as LocalTransport from "../../../packages/shell/src/transport/LocalTransport.ts"
import type { Listener, Transport } from "../../../packages/shell/src/transport/Program.ts"
import { processes } from "../support/Processes.ts"
import { openShell } from "../support/Shells.ts"

const local = LocalTransport.makeUnconfined()
const silent = { stdout: () => undefined, stderr: () => undefined }

let marks = 0
/** An argument of `sleep` that only one test uses. */
const uniqueSeconds = () => `5${String(process.pid).padStart(8, "0")}.${++marks}`

/** The local transport. `before` runs before the keeper gets an order. */
const observed = (before: (order: string) => void): Transport => ({
  ...local,
  run: (script) =>
    Effect.map(local.run(script), (program) => ({
      ...program,
      write: (bytes) =>
        Effect.suspend(() => {
          before(String(bytes))
          return program.write(bytes)
        })
    }))
})

const interrupt = { order: "interrupt", dialect: "sh", again: false, number: 1, since: 0 } as const
const isInterrupt = (order: string) => order.startsWith("interrupt")

it.scopedLive("SL-16: an order to the keeper ends with its own answer, also if its caller is interrupted", () =>
  Effect.gen(function* () {
    const ordered = yield* Deferred.make<void>()
    const held: Array<() => void> = []
    let holds = false
    const seen = observed((order) => isInterrupt(order) && Deferred.unsafeDone(ordered, Effect.void))
    const gated: Transport = {
      ...seen,
      run: (script) =>
        Effect.map(seen.run(script), (program) => ({
          ...program,
          listen: (listener: Listener) =>
            program.listen((...chunk) => (holds ? held.push(() => listener(...chunk)) : listener(...chunk)))
        }))
    }
    const keeper = yield* Keeper.start(gated, makeToken())
    holds = true
    const first = yield* Effect.forkDaemon(keeper.ask(interrupt))
    yield* Deferred.await(ordered)
    yield* Fiber.interruptFork(first)
    const second = yield* Effect.forkDaemon(keeper.ask({ order: "root", pid: 99_999_999, init: undefined }))
    // Every fiber that can go on has gone on.
    yield* Effect.async<void>((resume) => void setImmediate(() => resume(Effect.void)))
    holds = false
    for (const pass of held) pass()
    expect(yield* Fiber.join(second)).toMatch(/^root \d+$/)
    expect(Exit.isInterrupted(yield* Fiber.await(first))).toBe(true)
  })
)

/** The process whose command line has this text. */
const processWith = (text: string) =>
  Number(
    readdirSync("/proc").find((name) => {
      try {
        return /^\d+$/.test(name) && readFileSync(`/proc/${name}/cmdline`, "utf8").includes(text)
      } catch {
        // It has ended.
        return false
      }
    })
  )

it.scopedLive("SL-17: a keeper that stands still counts as ended, and no late answer meets another order", () =>
  Effect.gen(function* () {
    const mark = makeToken()
    const keeper = yield* Keeper.start(local, mark, 100)
    const pid = processWith(mark)
    process.kill(pid, "SIGSTOP")
    expect(yield* keeper.ask({ order: "root", pid: 99_999_999, init: undefined })).toBe("")
    expect(yield* keeper.exit).toEqual({ code: null, signal: null })
    process.kill(pid, "SIGCONT")
    expect(yield* keeper.ask(interrupt)).toBe("")
  })
)

it.scopedLive("SL-18: a second interruption does not end the stop of the first", () =>
  Effect.gen(function* () {
    const mark = uniqueSeconds()
    const started = yield* Deferred.make<void>()
    let again = () => {}
    const shell = yield* openShell(
      observed((order) => isInterrupt(order) && again()),
      "/"
    )
    const fiber = yield* Effect.forkDaemon(
      shell.live.run(
        { text: `setsid sleep ${mark} & echo started; sleep ${mark}` },
        { ...silent, stdout: () => Deferred.unsafeDone(started, Effect.void) }
      )
    )
    again = () => fiber.unsafeInterruptAsFork(fiber.id())
    yield* Deferred.await(started)
    expect(Exit.isInterrupted(yield* Fiber.interrupt(fiber))).toBe(true)
    expect(yield* processes(`sleep ${mark}`)).toEqual([])
    expect((yield* shell.run("echo hi")).stdout).toBe("hi\n")
  })
)

it.scopedLive("SL-16: a shell that ends while it is stopped leaves no process", () =>
  Effect.gen(function* () {
    const mark = uniqueSeconds()
    let end = () => {}
    const shell = yield* openShell(
      observed((order) => isInterrupt(order) && end()),
      "/"
    )
    const pid = Number((yield* shell.run("echo $$")).stdout)
    end = () => process.kill(pid, "SIGKILL")
    const answer = yield* shell.stop(`setsid sleep ${mark} & sleep ${mark} & echo started; sleep ${mark}`)
    expect(answer).toMatchObject({ stopped: true, code: 124, closed: "exited" })
    expect(yield* processes(`sleep ${mark}`)).toEqual([])
  })
)

it.scopedLive("SL-17: the end of the keeper closes the shell with everything that it started", () =>
  Effect.gen(function* () {
    const mark = uniqueSeconds()
    const shell = yield* openShell(local, "/")
    // The keeper's script has the mark of the shell.
    const killKeeper = 'kill -KILL $(cd /proc && grep -lF "=$DAYBOOK_SHELL" [0-9]*/cmdline 2>/dev/null | cut -d / -f 1)'
    const answer = yield* shell.run(`setsid sleep ${mark} & sleep ${mark} & ${killKeeper}; sleep ${mark}`)
    expect(answer).toMatchObject({ stopped: false, code: 255, closed: "lost" })
    expect(yield* processes(`sleep ${mark}`)).toEqual([])
  })
)

it.scopedLive("SL-16: a stop in a shell that was opened within another shell's command leaves no process", () =>
  Effect.gen(function* () {
    const mark = uniqueSeconds()
    const env = { PATH: process.env["PATH"] ?? "/usr/bin:/bin", DAYBOOK_CALL: "outer.1" }
    const shell = yield* openShell(LocalTransport.makeUnconfined({ env }), "/")
    yield* shell.stop(`(while :; do sleep ${mark}; done) & echo started; sleep ${mark}`)
    expect(yield* processes(`sleep ${mark}`)).toEqual([])
  })
)

it.scopedLive("SL-19: the end of a shell ends processes that start one another and end", () =>
  Effect.gen(function* () {
    const sign = join(tmpdir(), `daybook-chain-${uniqueSeconds()}`)
    yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(sign, { force: true })))
    const script = `: >${sign}; sleep 0.02; setsid sh -c "$0" "$0" & exit`
    const running = Effect.map(
      Effect.all([processes(`sh -c ${script} ${script}`), processes(`setsid sh -c ${script} ${script}`)]),
      (found) => found.flat()
    )
    const scope = yield* Scope.make()
    const shell = yield* Scope.extend(openShell(local, "/"), scope)
    yield* shell.run(`for i in 1 2 3 4 5; do sh -c '${script}' '${script}' & done; until [ -e ${sign} ]; do :; done`)
    expect(yield* running).not.toEqual([])
    yield* Scope.close(scope, Exit.void)
    expect(yield* running).toEqual([])
  })
)
