/** What the command itself can fail with, beside what the runtime says. Exit codes: render/Failure.ts. */
import { Schema } from "effect"

/** What was typed cannot be understood. */
export class UsageError extends Schema.TaggedError<UsageError>("@daybook/cli/UsageError")("UsageError", {
  message: Schema.String
}) {}

/** The command names something that is not there. */
export class NotFound extends Schema.TaggedError<NotFound>("@daybook/cli/NotFound")("NotFound", {
  message: Schema.String
}) {}

/** The database's place cannot be used. */
export class DatabaseProblem extends Schema.TaggedError<DatabaseProblem>("@daybook/cli/DatabaseProblem")(
  "DatabaseProblem",
  { message: Schema.String }
) {}

/** `daybook doctor` found the database damaged or at odds with itself. */
export class DatabaseUnsound extends Schema.TaggedError<DatabaseUnsound>("@daybook/cli/DatabaseUnsound")(
  "DatabaseUnsound",
  { message: Schema.String }
) {}

/** `daybook doctor` found providers that cannot be used. */
export class ModelUnreachable extends Schema.TaggedError<ModelUnreachable>("@daybook/cli/ModelUnreachable")(
  "ModelUnreachable",
  { message: Schema.String }
) {}

/** `daybook files verify` found files that are not as the log says. */
export class FilesDiffer extends Schema.TaggedError<FilesDiffer>("@daybook/cli/FilesDiffer")("FilesDiffer", {
  message: Schema.String
}) {}

/** The prompt's activity did not complete. `type` is the kind of error that the log holds. */
export class ActivityFailed extends Schema.TaggedError<ActivityFailed>("@daybook/cli/ActivityFailed")(
  "ActivityFailed",
  { message: Schema.String, type: Schema.optionalWith(Schema.String, { exact: true }) }
) {}

/** Ctrl-C, or another process, ended the activity. The inbox is kept. */
export class Interrupted extends Schema.TaggedError<Interrupted>("@daybook/cli/Interrupted")("Interrupted", {
  message: Schema.String
}) {}

/** stdout or stderr refused what was written, for another reason than that its reader went away. */
export class OutputFailed extends Schema.TaggedError<OutputFailed>("@daybook/cli/OutputFailed")("OutputFailed", {
  message: Schema.String
}) {}

/** The reader of stdout has gone away. */
export class OutputClosed extends Schema.TaggedError<OutputClosed>("@daybook/cli/OutputClosed")("OutputClosed", {}) {}
