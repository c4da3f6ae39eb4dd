/** Method: a child process kills itself before a random statement of the database; then the import runs again. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { survives } from "../../support/ImportKills.ts"

it.live(
  "IM-41: an import that was killed, run again, equals one clean import; until then the session says it",
  () =>
    Effect.gen(function* () {
      assert.isAbove(yield* survives(2, 11), 0)
    }).pipe(Effect.scoped),
  120_000
)
