/** Where the escape suite runs its commands: each way to run a command in a sandbox makes its own. */
import type { Effect, Scope } from "effect"
import type { SandboxSettings } from "../../packages/core/src/child/Sandbox.ts"

/** What became of a command. */
export interface Tried {
  readonly exitCode: number | null
  /** The bound that ended it. */
  readonly stopped: string | undefined
  readonly text: string
}

/** A folder that a sandbox may write, with another one, which has a secret, beside it. */
export interface Bench {
  readonly folder: string
  readonly outside: string
  /** A folder that only the settings can name. */
  readonly beside: string
  readonly at: (name: string) => string
  readonly put: (name: string, text: string) => void
  readonly run: (command: string) => Effect.Effect<Tried>
  /** What the command prints. */
  readonly said: (command: string) => Effect.Effect<string>
  /** Ends what may live longer than a command. */
  readonly close: Effect.Effect<void>
}

/** Makes a bench with the settings, which see the folder beside. */
export type MakeBench = (
  settings?: SandboxSettings | ((beside: string) => SandboxSettings)
) => Effect.Effect<Bench, never, Scope.Scope>
