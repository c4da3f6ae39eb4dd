/** Checks what a caller says about checkpoints, before anything starts. Pure. Spec: SL-151, SL-152 in specs/shell.md. */
import * as path from "node:path"
import { Either } from "effect"
import { InvalidOption } from "../domain/ShellError.ts"
import type { Place } from "./ScriptParts.ts"

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
  readonly place: Place
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
