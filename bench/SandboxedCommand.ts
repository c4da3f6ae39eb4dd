/** Measures the cost of a sandbox: a sandboxed command against a bare one, from start to end. */
import { mkdirSync, realpathSync } from "node:fs"
import { join } from "node:path"
import { Context, Effect, Layer, Option, Record, Stream } from "effect"
import { childEnvironment } from "../packages/core/src/child/ChildEnvironment.ts"
import { bounded } from "../packages/core/src/child/SandboxWatch.ts"
import * as Sandbox from "../packages/core/src/child/Sandbox.ts"
import { runShell } from "../packages/core/src/child/ShellProcess.ts"
import { median } from "./Figures.ts"

const commands = 20

const run = (cwd: string) =>
  Effect.gen(function* () {
    const started = performance.now()
    const env = childEnvironment(process.env)
    const confined = Option.getOrUndefined(yield* (yield* Sandbox.Sandbox).confine({ cwd, writable: [cwd], env }))
    const bounds = confined === undefined ? [] : yield* bounded(confined.limits)
    const shell =
      confined === undefined
        ? yield* runShell({ command: "true", cwd, env })
        : yield* Sandbox.start(confined.launch, (prefix) =>
            runShell({ command: "true", cwd, env: confined.env, prefix: [...bounds, ...prefix] })
          )
    yield* Stream.runDrain(shell.output)
    yield* shell.exit
    return performance.now() - started
  }).pipe(Effect.scoped)

export interface Result {
  /** In milliseconds. */
  readonly bare: number
  readonly sandboxed: number
  /** Additional milliseconds of a sandboxed command over the bare one before it. */
  readonly more: number
}

/** Alternates commands of both kinds; medians over all. */
export const measure = (directory: string, rounds: number): Promise<Result> =>
  Effect.gen(function* () {
    const cwd = join(realpathSync(directory), "project")
    mkdirSync(cwd)
    const sandbox = Context.get(yield* Layer.build(Sandbox.layer({ mode: "on" })), Sandbox.Sandbox)
    const confined = Effect.provideService(run(cwd), Sandbox.Sandbox, sandbox)
    // The first run searches for bubblewrap.
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
  }).pipe(Effect.scoped, Effect.runPromise)
