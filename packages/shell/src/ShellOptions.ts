/** What a host sets, and what a caller gives. Spec: SL-66..SL-72, SL-151, SL-152 in specs/shell.md. */
import * as path from "node:path"
import { type Duration, type Effect, Either, type Stream } from "effect"
import type { CheckpointScope } from "./checkpoint/Scripts.ts"
import type { Budget } from "./domain/ExecResult.ts"
import { InvalidOption } from "./domain/ShellError.ts"
import type { Target } from "./domain/Target.ts"
import type { OutputSettings, OutputStream } from "./output/OutputStore.ts"
import type { OperatorPolicy, ShellLists } from "./policy/Policy.ts"
import type { ShellRecord } from "./record/ShellRecord.ts"
import type { LocalSettings } from "./transport/LocalTransport.ts"
import type { TransportSettings } from "./transport/TransportSettings.ts"

// Checks what a caller says about checkpoints, before anything starts.

export interface CheckpointOptions {
  /** The folder of which checkpoints are made: absolute, not the root folder, and not the home folder. */
  readonly workspace?: string
  /** True by default with a workspace; on this machine only on request. */
  readonly checkpoints?: boolean
  /** A checkpoint before each command that may change files; true by default where there are checkpoints. */
  readonly autoSnapshot?: boolean
  /** Patterns, as in `.gitignore`, of files that checkpoints leave alone. They cannot begin with `!`. */
  readonly checkpointIgnores?: ReadonlyArray<string>
}

export interface CheckpointSettings {
  readonly place: CheckpointScope
  readonly automatic: boolean
}

const invalid = (option: string, details: string) => Either.left(new InvalidOption({ option, details }))

const badPattern = (pattern: string): boolean =>
  pattern === "" || pattern.length > 1_000 || /^[!#]|[\0\r\n]/.test(pattern)

const badWorkspace = (workspace: string): boolean =>
  !workspace.startsWith("/") ||
  workspace.includes("\0") ||
  workspace.length > 4_096 ||
  path.posix.resolve(workspace) === "/"

/** Undefined: the shell has no checkpoints. */
export const checkpointSettings = (
  isLocal: boolean,
  { autoSnapshot, checkpointIgnores = [], checkpoints, workspace }: CheckpointOptions
): Either.Either<CheckpointSettings | undefined, InvalidOption> => {
  if (workspace !== undefined && badWorkspace(workspace)) {
    return invalid("workspace", "expected an absolute path below the root folder")
  }
  if (checkpointIgnores.length > 100 || checkpointIgnores.some(badPattern)) {
    return invalid("checkpoint_ignores", "expected at most 100 patterns of one line, none of which begins with ! or #")
  }
  if (checkpoints === true && workspace === undefined) return invalid("checkpoints", "checkpoints need a workspace")
  if (workspace === undefined || !(checkpoints ?? !isLocal)) {
    return autoSnapshot === true ? invalid("auto_snapshot", "the shell has no checkpoints") : Either.right(undefined)
  }
  return Either.right({ place: { workspace, ignores: checkpointIgnores }, automatic: autoSnapshot ?? true })
}

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
  /** The environment of a shell on this machine, in place of the settings' environment. */
  readonly env?: Readonly<Record<string, string>>
}
