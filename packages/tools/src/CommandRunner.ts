/**
 * Runs the commands of `bash`. The tool decides what may run, where, and what the model reads of it; a runner starts the
 * command, ends it, and says how it ended. `Bash.ts` is the default: a process per command. A host can provide
 * live shells (`LiveCommands` of `@daybook/shell`). Spec: TO-130..TO-137.
 */
import { Context, type Effect, type Scope, type Stream } from "effect"
import type { Confined } from "@daybook/core/child/Sandbox"
import type { Chunk } from "@daybook/core/child/ShellProcess"
import type { ToolFailure } from "@daybook/core/domain/ToolError"
import type { ToolCall } from "@daybook/core/tool/ToolDefinition"

/** A command that may run. */
export interface CommandRequest {
  readonly text: string
  readonly cwd: string
  /** A live shell runs it there and stays in its own folder. */
  readonly elsewhere: boolean
  /** The folder of the Location. */
  readonly home: string
  readonly env: Readonly<Record<string, string>>
  readonly confined: Confined | undefined
  /** Seconds until the command is ended. */
  readonly seconds: number
  /** It may change what later commands of its shell mean. */
  readonly changes: boolean
}

export interface CommandEnd {
  readonly code: number | null
  readonly signal: string | null
  readonly stopped?: "timeout" | "processes" | "memory"
  /** The shell's folder, if it is another one than before. */
  readonly cwd?: string
  /** What jobs of earlier commands printed before this one. */
  readonly late?: string
  /** What became of the shell. */
  readonly notices?: ReadonlyArray<string>
}

/** A command that runs. The end of its scope ends it. */
export interface Running {
  /** Both streams in the order of arrival. After `end` it ends when everything that was printed before is read. */
  readonly output: Stream.Stream<Chunk, ToolFailure>
  /** Its end. What it started may still run. */
  readonly exit: Effect.Effect<CommandEnd, ToolFailure>
  /** Ends it, and everything that may not outlive it. */
  readonly end: Effect.Effect<void>
}

/** The place where one call runs its command. */
export interface CommandPlace {
  /** The folder of a command that names none; undefined for the Location's. */
  readonly cwd: string | undefined
  /** The lines that changed the shell before, one below the other. */
  readonly before: string
  readonly start: (request: CommandRequest) => Effect.Effect<Running, ToolFailure, Scope.Scope>
}

/** One live shell per session. */
export interface LiveShells {
  readonly enter: (call: ToolCall) => Effect.Effect<CommandPlace, ToolFailure, Scope.Scope>
}

/** The host's live shells; none by default. */
export class CommandRunner extends Context.Reference<CommandRunner>()("@daybook/tools/CommandRunner", {
  defaultValue: (): { readonly live: LiveShells | undefined } => ({ live: undefined })
}) {}
