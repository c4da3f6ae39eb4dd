/** Method: real processes open the same new file at the same instant, file after file; each must find a sound database. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { join } from "node:path"
import { childProgram, startChild } from "./Child.ts"
import { temporaryFolder } from "./Database.ts"

export const startsTogether = Effect.fnUntraced(function* (processes: number, rounds: number) {
  const [program, folder] = [yield* childProgram(), yield* temporaryFolder]
  const children = yield* Effect.replicateEffect(startChild(program.outfile, join(folder, "none.db")), processes)
  for (let round = 0; round < rounds; round += 1) {
    const filename = join(folder, `${round}.db`)
    yield* Effect.forEach(children, (child) => child.tell({ do: "start", filename }))
    const answers = yield* Effect.forEach(children, ({ answer }) => answer)
    assert.deepStrictEqual(
      answers,
      children.map(() => ({ is: "opened" as const })),
      `round ${round}`
    )
  }
})
