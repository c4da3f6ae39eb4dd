/** What can go wrong with checkpoints, as values that a caller can act on. Spec: SL-150..SL-153 in specs/shell.md. */
import { Schema } from "effect"

/** There are no checkpoints here, or this one could not be made or restored. */
export class CheckpointFailed extends Schema.TaggedError<CheckpointFailed>("@daybook/shell/CheckpointFailed")(
  "CheckpointFailed",
  {
    /**
     * `unsupported`: the shell was created without checkpoints. `no git`: git is not installed where the shell runs.
     * `workspace`: the folder is missing or not allowed. `too large`: new and changed files exceed the limit. `gone`: the
     * checkpoints were removed from outside. `failed`: anything else.
     */
    reason: Schema.Literal("unsupported", "no git", "workspace", "too large", "gone", "failed"),
    details: Schema.String
  }
) {
  override get message() {
    return `checkpoint: ${this.details}`
  }
}

/** The shell keeps no checkpoint with this id, or several whose ids begin with it. */
export class CheckpointNotFound extends Schema.TaggedError<CheckpointNotFound>("@daybook/shell/CheckpointNotFound")(
  "CheckpointNotFound",
  {
    /** Empty if the most recent one was asked for. */
    checkpointID: Schema.String
  }
) {
  override get message() {
    return this.checkpointID === ""
      ? "there is no checkpoint yet"
      : `there is no checkpoint ${this.checkpointID}, or several begin with it`
  }
}
