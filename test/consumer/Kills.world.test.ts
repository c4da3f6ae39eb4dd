/**
 * Method: a child process runs a consumer and is killed with SIGKILL after a call's effect and before its cursor is stored;
 * another one continues, until one reaches the end. Then the effects are compared with the log.
 */
import { fork } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Layer } from "effect"
import * as Consumer from "../../packages/log/src/consumer/Consumer.ts"
import * as Store from "../../packages/log/src/Store.ts"
import { childProgram } from "../support/Child.ts"
import { temporaryFolder } from "../support/Database.ts"
import { derived, derivedTable } from "../support/Derived.ts"
import { begin, session } from "../support/Logs.ts"
import { waitingFor } from "../support/Waiting.ts"

/** Runs the child until it applied its last call, kills it then, or lets it end by itself; returns whether it was killed. */
const runChild = (program: string, args: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const ended = yield* Deferred.make<boolean>()
    let killed = false
    const child = yield* Effect.acquireRelease(
      Effect.sync(() => fork(program, [...args], { stdio: "inherit", execArgv: [] })),
      (child) => Effect.sync(() => child.kill("SIGKILL"))
    )
    child.on("message", () => {
      killed = child.kill("SIGKILL")
    })
    child.on("exit", (code) =>
      Deferred.unsafeDone(ended, killed || code === 0 ? Effect.succeed(killed) : Effect.dieMessage(`child: ${code}`))
    )
    return yield* waitingFor("the end of the child")(Deferred.await(ended))
  }).pipe(Effect.scoped)

for (const kind of ["transaction", "outside"] as const) {
  const law =
    kind === "transaction"
      ? "CN-2: a process killed between the statements and their commit leaves each event applied exactly once, in order"
      : "CN-3: a process killed between the effect and the cursor leaves each event applied at least once, in order"
  it.scopedLive(law, () =>
    Effect.gen(function* () {
      const [{ outfile }, folder] = [yield* childProgram("consumerChild.ts"), yield* temporaryFolder]
      const [filename, target] = [join(folder, "daybook.db"), join(folder, "positions")]
      const [one, two] = [session(), session()]
      const store = Layer.provideMerge(derivedTable, Store.layer({ filename }))
      const stored = Effect.zipWith(begin(one, 9), begin(two, 6), (first, second) => [...first, ...second])
      const positions = (yield* Effect.provide(stored, store)).map(({ position }) => position)
      const killed: Array<boolean> = []
      for (const at of [1, 1, 2, 1, 3, 0]) killed.push(yield* runChild(outfile, [filename, kind, `${at}`, target]))
      assert.deepStrictEqual(killed, [true, true, true, true, true, false])
      yield* Effect.gen(function* () {
        if (kind === "transaction") {
          assert.deepStrictEqual(yield* derived(one), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
          assert.deepStrictEqual(yield* derived(two), [0, 1, 2, 3, 4, 5, 6])
        } else {
          const lines = readFileSync(target, "utf8").trim().split("\n").map(Number)
          // Five kills repeat a call of three events each; their first deliveries are in order.
          assert.strictEqual(lines.length, positions.length + 5 * 3)
          assert.deepStrictEqual([...new Set(lines)], positions)
        }
        const [status] = yield* Consumer.list
        assert.deepInclude(status, { name: "derived", lag: 0, state: "idle" })
      }).pipe(Effect.provide(store))
    })
  )
}
