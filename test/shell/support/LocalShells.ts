/** Shells of this machine for tests, with the facts that they record. */
import { Effect, Layer, type Scope } from "effect"
import type { Target } from "../../../packages/shell/src/domain/Target.ts"
import { type ShellFact, ShellRecord } from "../../../packages/shell/src/record/ShellRecord.ts"
import type { ShellSettings } from "../../../packages/shell/src/ShellOptions.ts"
import * as Shells from "../../../packages/shell/src/Shells.ts"

export const local: Target = { transport: "local", cwd: "/tmp" }

/** Shells whose facts are collected. */
export const withShells = <A, E>(
  settings: ShellSettings,
  use: (shells: Shells.Shells["Type"], facts: ReadonlyArray<ShellFact>) => Effect.Effect<A, E, Scope.Scope>
) => {
  const facts: Array<ShellFact> = []
  const record = Layer.succeed(
    ShellRecord,
    ShellRecord.of({ write: (fact) => Effect.sync(() => void facts.push(fact)) })
  )
  return Effect.scoped(Effect.flatMap(Shells.Shells, (shells) => use(shells, facts))).pipe(
    Effect.provide(Layer.provide(Shells.layer(settings), record))
  )
}
