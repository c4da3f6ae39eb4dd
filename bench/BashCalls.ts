/** Measures a call of `bash` from its settlement to its result, with a process per command and with the session's live shell. */
import { Effect } from "effect"
import { fileLog } from "../test/support/Database.ts"
import { makeLiveBench } from "../test/tools/LiveBench.ts"
import { makeWorkbench } from "../test/tools/Workbench.ts"
import { median } from "./Figures.ts"
import { times } from "./Shell.ts"

export interface Result {
  /** Milliseconds of one call, medians. */
  readonly process: number
  readonly live: number
}

const calls = 200

/** Alternates the two. */
export const measure = (rounds: number): Promise<Result> =>
  Effect.gen(function* () {
    const [process, live] = [yield* makeWorkbench(), yield* makeLiveBench({}, {}, fileLog)]
    const call = (bench: typeof process) => bench.succeed("bash", { command: "echo hi" })
    // The first call opens the shell.
    yield* call(live)
    const found = { process: new Array<number>(), live: new Array<number>() }
    for (let round = 0; round < rounds; round++) {
      found.process.push(yield* times(calls, call(process)))
      found.live.push(yield* times(calls, call(live)))
    }
    return { process: median(found.process), live: median(found.live) }
  }).pipe(Effect.scoped, Effect.orDie, Effect.runPromise)
