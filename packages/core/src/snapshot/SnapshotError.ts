/** Why the files of a Location could not be snapshotted or read from a snapshot. Spec: UN-10. */
import { Schema } from "effect"

/** No snapshot. `details` is a sentence for the person; work continues without one. */
export class SnapshotUnavailable extends Schema.TaggedError<SnapshotUnavailable>("@daybook/core/SnapshotUnavailable")(
  "SnapshotUnavailable",
  {
    /**
     * `no-git`: git is not installed. `too-large`: the folder exceeds a limit. `timeout`: it took too long. `missing`: the
     * store does not have the snapshot. `failed`: git or the file system failed.
     */
    reason: Schema.Literal("no-git", "too-large", "timeout", "missing", "failed"),
    details: Schema.String
  }
) {
  override get message() {
    return this.details
  }
}

export const unavailable = (reason: SnapshotUnavailable["reason"], details: string) =>
  new SnapshotUnavailable({ reason, details })
