/** Measures live shells: a command against the raw pipe and against a process per command, and a large output within a budget. */
import { spawn } from "node:child_process"
import { Effect, Layer } from "effect"
import { runShell } from "../packages/core/src/child/ShellProcess.ts"
import { none } from "../packages/shell/src/record/ShellRecord.ts"
import * as LiveShell from "../packages/shell/src/session/LiveShell.ts"
import * as Shells from "../packages/shell/src/Shells.ts"
import * as LocalTransport from "../packages/shell/src/transport/LocalTransport.ts"
import * as BareShell from "./BareShell.ts"
import { median } from "./Figures.ts"

export interface Result {
  /** Milliseconds of one `echo hi`, medians. */
  readonly raw: number
  /** The shortest frame with an exit code. */
  readonly shortest: number
  /** A live shell's bytes and exit code. */
  readonly live: number
  /** Its result: redacted, within a budget. */
  readonly result: number
  readonly process: number
  /** MB a second: a large output through a budget of 100,000 characters. */
  readonly rate: number
  /** Megabytes that the process grew by meanwhile. */
  readonly memory: number
}

export const times = (count: number, one: Effect.Effect<unknown, unknown>) =>
  Effect.gen(function* () {
    const found: Array<number> = []
    for (let index = 0; index < count; index++) {
      const started = performance.now()
      yield* Effect.orDie(one)
      found.push(performance.now() - started)
    }
    return median(found)
  })

const rawPipe = Effect.acquireRelease(
  Effect.sync(() => spawn("bash", ["--noprofile", "--norc"], { stdio: ["pipe", "pipe", "inherit"] })),
  (child) => Effect.sync(() => child.kill("SIGKILL"))
)

const oneProcess = Effect.scoped(
  Effect.flatMap(runShell({ command: "echo hi", cwd: "/tmp", env: process.env }), ({ exit }) => exit)
)

const sinks = { stdout: () => undefined, stderr: () => undefined }

export const measure = (rounds: number, megabytes: number): Promise<Result> =>
  Effect.gen(function* () {
    const pipe = yield* rawPipe
    const shell = yield* LiveShell.open(LocalTransport.makeUnconfined(), { cwd: "/tmp", late: () => undefined })
    const shells = yield* Shells.Shells
    const id = yield* shells.create({ target: { transport: "local", cwd: "/tmp" } })
    const found = {
      raw: new Array<number>(),
      shortest: new Array<number>(),
      live: new Array<number>(),
      result: new Array<number>(),
      process: new Array<number>()
    }
    for (let round = 0; round < rounds; round++) {
      found.raw.push(yield* times(2_000, BareShell.raw(pipe)))
      found.shortest.push(yield* times(2_000, BareShell.framed(pipe)))
      found.live.push(yield* times(2_000, shell.run({ text: "echo hi" }, sinks)))
      found.result.push(yield* times(2_000, shells.exec(id, "echo hi")))
      found.process.push(yield* times(50, oneProcess))
    }
    const before = process.memoryUsage.rss()
    let peak = before
    const watch = setInterval(() => (peak = Math.max(peak, process.memoryUsage.rss())), 20)
    const started = performance.now()
    const lines = Math.round((megabytes * 1e6) / 80)
    yield* shells.exec(
      id,
      `yes "$(printf 'a line of text like those that compilers print, number %d' 123456789012)" | head -n ${lines}`
    )
    const seconds = (performance.now() - started) / 1_000
    clearInterval(watch)
    return {
      raw: median(found.raw),
      shortest: median(found.shortest),
      live: median(found.live),
      result: median(found.result),
      process: median(found.process),
      rate: megabytes / seconds,
      memory: (peak - before) / 1e6
    }
  }).pipe(Effect.provide(Layer.provide(Shells.layer(), none)), Effect.scoped, Effect.runPromise)
