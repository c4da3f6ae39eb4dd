/**
 * A program with separate streams that a transport runs: a local process, a channel of an SSH connection, or a program in
 * a container. `session/` builds live shells from programs and knows no transport. Spec: SL-80..SL-83 in specs/shell.md.
 */
import type { Breach, Limits, Outside } from "@daybook/core/child/SandboxWatch"
import type { Effect, Scope } from "effect"
import type { TransportFailed } from "../domain/ShellError.ts"

export type StreamName = "stdout" | "stderr"

/** How a program ended. Both fields are null if the connection broke before its end was known. */
export interface Exit {
  readonly code: number | null
  readonly signal: string | null
  /** Why its sandbox was ended. */
  readonly breach?: Breach
}

export type Listener = (stream: StreamName, bytes: Uint8Array) => void

export interface Program {
  /** Gives every chunk to the listener, and chunks that came before. Called once. */
  readonly listen: (listener: Listener) => void
  /** Stops reading: the program waits when it prints more. */
  readonly pause: () => void
  readonly resume: () => void
  /** Sends bytes to standard input. Completes when the transport has taken them; ignored after the end. */
  readonly write: (bytes: string | Uint8Array) => Effect.Effect<void>
  /** As `write`, without waiting. */
  readonly send: (bytes: string | Uint8Array) => void
  /** Ends standard input. */
  readonly endInput: Effect.Effect<void>
  /** The program's end. Its descendants may still run and hold the streams. */
  readonly exit: Effect.Effect<Exit>
  /** Only in a sandbox: the program's number for programs outside of it. Undefined once it has ended. */
  readonly outside?: () => Outside | undefined
}

/** Runs programs in one place. The scope of the transport holds what they share, such as the connection. */
export interface Transport {
  readonly name: "local" | "ssh" | "docker"
  /**
   * Runs a script with `sh -c`. The scope's end closes the streams and ends a local process; a `Keeper` ends the others. It
   * runs outside of a shell's sandbox.
   */
  readonly run: (script: string) => Effect.Effect<Program, TransportFailed, Scope.Scope>
  /** Runs the script that becomes the shell: in the sandbox, if there is one; else as `run`. */
  readonly runShell: (script: string) => Effect.Effect<Program, TransportFailed, Scope.Scope>
  readonly sandbox?: ShellSandbox
}

/** The sandbox of a shell. */
export interface ShellSandbox {
  /** The folder in which the shell starts. */
  readonly cwd: string
  readonly limits: Limits
  /** What the sandbox allows, to explain a failure. */
  readonly summary: string
  /** Runs a script that reaches what the shell reaches, and also writes this folder. */
  readonly run: (script: string, folder: string) => Effect.Effect<Program, TransportFailed, Scope.Scope>
}
