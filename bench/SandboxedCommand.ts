/** What a sandbox costs: a command in one beside a bare command, from its arguments to its end. */
import { Effect, Option, Record, Stream } from "effect"
import { mkdirSync, realpathSync } from "node:fs"
import { join } from "node:path"
import { childEnvironment } from "../packages/core/src/child/ChildEnvironment.ts"
import { bounded } from "../packages/core/src/child/ControlGroup.ts"
import * as Sandbox from "../packages/core/src/child/Sandbox.ts"
import { runShell } from "../packages/core/src/tool/builtin/ShellProcess.ts"
import { median } from "./Figures.ts"

const commands = 20

const run = (cwd: string) =>
  Effect.gen(function* () {
    const started = performance.now()
    const env = childEnvironment(process.env)
    const confined = Option.getOrUndefined(yield* (yield* Sandbox.Sandbox).confine({ cwd, writable: [cwd], env }))
    const bounds = confined === undefined ? [] : yield* bounded(confined.limits)
    const prefix = [...bounds, ...(confined?.prefix ?? [])]
    const shell = yield* runShell({ command: "true", cwd, env: confined?.env ?? env, prefix })
    yield* Stream.runDrain(shell.output)
    yield* shell.exit
    return performance.now() - started
  }).pipe(Effect.scoped)

export interface Result {
  /** Milliseconds. */
  readonly bare: number
  readonly sandboxed: number
  /** Of a sandboxed command more than of the bare one before it. */
  readonly more: number
}

/** Commands of both kinds in turn, medians over all. */
export const measure = (directory: string, rounds: number): Promise<Result> =>
  Effect.gen(function* () {
    const cwd = join(realpathSync(directory), "project")
    mkdirSync(cwd)
    const sandbox = yield* Effect.provide(Sandbox.Sandbox, Sandbox.layer({ mode: "on" }))
    const confined = Effect.provideService(run(cwd), Sandbox.Sandbox, sandbox)
    // The first one looks for bubblewrap.
    yield* confined
    const times = { bare: new Array<number>(), sandboxed: new Array<number>(), more: new Array<number>() }
    for (let round = 0; round < rounds; round++) {
      for (let at = 0; at < commands; at++) {
        const [one, other] = [yield* run(cwd), yield* confined]
        times.bare.push(one)
        times.sandboxed.push(other)
        times.more.push(other - one)
      }
    }
    return Record.map(times, median)
  }).pipe(Effect.runPromise)
