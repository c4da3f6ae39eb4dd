/** What a host sets, and what a caller gives. Spec: SL-3..SL-6, SL-66..SL-72 in specs/shell.md. */
import type { Duration, Effect, Stream } from "effect"
import type { CheckpointOptions } from "./checkpoint/CheckpointOptions.ts"
import type { Budget } from "./domain/Budget.ts"
import type { Target } from "./domain/Target.ts"
import type { OutputSettings, OutputStream } from "./output/OutputStore.ts"
import type { OperatorPolicy, ShellLists } from "./policy/Policy.ts"
import type { ShellRecord } from "./record/ShellRecord.ts"
import type { LocalSettings } from "./transport/LocalTransport.ts"
import type { TransportSettings } from "./transport/TransportSettings.ts"

/** The operator's settings. No argument of a caller changes them. */
export interface ShellSettings {
  /** Time after the end of the last command until a shell is closed; 30 minutes by default, zero for never. */
  readonly idle?: Duration.DurationInput
  /** Shells that are open at the same time; 64 by default. */
  readonly limit?: number
  /** Judged before the lists of a shell. Commands such as `rm -rf` are refused by default. */
  readonly policy?: OperatorPolicy
  /** Where whole outputs are kept; nowhere by default. */
  readonly outputs?: OutputSettings
  /** Values that never appear in results, besides the shapes of secrets. */
  readonly secrets?: ReadonlyArray<string>
  /** Which keys and hosts are trusted, and how Docker is reached. */
  readonly transports?: TransportSettings
  /** The environment of shells on this machine. */
  readonly local?: LocalSettings
}

/** The settings that apply to shells of agents: their environment, and where whole outputs are kept, are those of `bash`. */
export type LiveCommandsSettings = Pick<ShellSettings, "idle" | "limit" | "policy">

export const defaults = { idle: "30 minutes", limit: 64, timeoutSeconds: 120, longestTimeoutSeconds: 3_600 } as const

/** Characters of a command. */
export const longestCommand = 1_048_576

export interface CreateOptions extends CheckpointOptions {
  readonly target: Target
  /** For commands that name no budget. */
  readonly budget?: Budget
  /** Names of commands that the shell may and may not run; they only tighten the operator's policy. */
  readonly lists?: ShellLists
  /**
   * Folders that a sandboxed shell on this machine may write, besides those of the sandbox's settings; this process's folder
   * by default. The shell starts in the first one. Only a host sets it: no argument of an MCP client does.
   */
  readonly writable?: ReadonlyArray<string>
}

/** Makes a command wait for a slow reader of its output. A command that is stopped does not wait. */
export interface Flow {
  /** The command waits when it prints more. Some output still arrives: at most a few megabytes. */
  readonly pause: () => void
  readonly resume: () => void
}

export interface ExecOptions {
  /** Replaces the shell's budget. */
  readonly budget?: Budget
  /** Seconds until the command is stopped, 1 to 3,600; 120 by default. */
  readonly timeoutSeconds?: number
  /** The command's standard input; empty by default. */
  readonly input?: string | Stream.Stream<string>
  /** Completes when the command has to stop before its timeout. Its exit code is 130 then. */
  readonly stop?: Effect.Effect<void>
  /** Receives redacted output while the command runs. Must return soon. */
  readonly onText?: (stream: OutputStream, text: string, flow: Flow) => void
  /** The folder to run in; the shell's by default. The shell stays there. */
  readonly cwd?: string
  /** The command is an agent's call, which keeps the output: the result and the record have none. */
  readonly call?: CalledCommand
}

export interface CalledCommand {
  /** Names the call in the record. */
  readonly callID: string
  /** Takes the output as it comes. The bytes are the caller's. Must return soon. */
  readonly take: (stream: OutputStream, bytes: Uint8Array, flow: Flow) => void
}

/** What a host, and no caller, gives to a shell. */
export interface HostOptions {
  /** Records the shell instead of the record of `Shells`. Its id is then unlike those of other processes. */
  readonly record?: ShellRecord["Type"]
  /** The environment of a shell on this machine, instead of that of the settings. */
  readonly env?: Readonly<Record<string, string>>
}
