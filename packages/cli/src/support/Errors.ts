/** Defines the command's own errors, in addition to those of the runtime. Exit codes: render/Failure.ts. */
import { Schema } from "effect"

/** The command line, the environment or an input cannot be used. */
export class UsageError extends Schema.TaggedError<UsageError>("@daybook/cli/UsageError")("UsageError", {
  message: Schema.String
}) {}

/** The command names something that does not exist. */
export class NotFound extends Schema.TaggedError<NotFound>("@daybook/cli/NotFound")("NotFound", {
  message: Schema.String
}) {}

/** The path of the database cannot be used. */
export class DatabaseProblem extends Schema.TaggedError<DatabaseProblem>("@daybook/cli/DatabaseProblem")(
  "DatabaseProblem",
  { message: Schema.String }
) {}

/** `daybook doctor` found the database damaged or inconsistent. */
export class DatabaseUnsound extends Schema.TaggedError<DatabaseUnsound>("@daybook/cli/DatabaseUnsound")(
  "DatabaseUnsound",
  { message: Schema.String }
) {}

/** `daybook doctor` found providers that cannot be used. */
export class ModelUnreachable extends Schema.TaggedError<ModelUnreachable>("@daybook/cli/ModelUnreachable")(
  "ModelUnreachable",
  { message: Schema.String }
) {}

/** `daybook files verify` found files that differ from the log. */
export class FilesDiffer extends Schema.TaggedError<FilesDiffer>("@daybook/cli/FilesDiffer")("FilesDiffer", {
  message: Schema.String
}) {}

/** `daybook prune` did not prune every session, or the file is still too large. Events already removed stay removed. */
export class PruneIncomplete extends Schema.TaggedError<PruneIncomplete>("@daybook/cli/PruneIncomplete")(
  "PruneIncomplete",
  { message: Schema.String }
) {}

/** `daybook undo` left files as they are. */
export class UndoIncomplete extends Schema.TaggedError<UndoIncomplete>("@daybook/cli/UndoIncomplete")(
  "UndoIncomplete",
  { message: Schema.String }
) {}

/** `daybook discord --check` found channels that the bot cannot work in. */
export class DiscordIncomplete extends Schema.TaggedError<DiscordIncomplete>("@daybook/cli/DiscordIncomplete")(
  "DiscordIncomplete",
  { message: Schema.String }
) {}

/** `daybook copy` could not copy every session. The others are copied. */
export class CopyIncomplete extends Schema.TaggedError<CopyIncomplete>("@daybook/cli/CopyIncomplete")(
  "CopyIncomplete",
  { message: Schema.String }
) {}

/** A file that the command writes cannot be written. */
export class FileProblem extends Schema.TaggedError<FileProblem>("@daybook/cli/FileProblem")("FileProblem", {
  message: Schema.String
}) {}

/** `daybook import` could not import every log. The others are imported. */
export class ImportIncomplete extends Schema.TaggedError<ImportIncomplete>("@daybook/cli/ImportIncomplete")(
  "ImportIncomplete",
  { message: Schema.String }
) {}

/** The prompt's activity did not complete, or its answer is not whole. `type` is the error type recorded in the log. */
export class ActivityFailed extends Schema.TaggedError<ActivityFailed>("@daybook/cli/ActivityFailed")(
  "ActivityFailed",
  { message: Schema.String, type: Schema.optionalWith(Schema.String, { exact: true }) }
) {}

/** The prompt's activity completed, but calls of it were refused because nobody allowed them. */
export class CallsRefused extends Schema.TaggedError<CallsRefused>("@daybook/cli/CallsRefused")("CallsRefused", {
  message: Schema.String
}) {}

/** Ctrl-C, or another process, ended the activity. The inbox is kept. */
export class Interrupted extends Schema.TaggedError<Interrupted>("@daybook/cli/Interrupted")("Interrupted", {
  message: Schema.String
}) {}

/** A write to stdout or stderr failed, for another reason than a closed reader. */
export class OutputFailed extends Schema.TaggedError<OutputFailed>("@daybook/cli/OutputFailed")("OutputFailed", {
  message: Schema.String
}) {}

/** The reader of stdout is gone. */
export class OutputClosed extends Schema.TaggedError<OutputClosed>("@daybook/cli/OutputClosed")("OutputClosed", {}) {}

/** The host of live shells is of another version or database. */
export class HostDiffers extends Schema.TaggedError<HostDiffers>("@daybook/cli/HostDiffers")("HostDiffers", {
  message: Schema.String
}) {}

/** The host of live shells did not start; `code` is its exit code. */
export class HostNotStarted extends Schema.TaggedError<HostNotStarted>("@daybook/cli/HostNotStarted")(
  "HostNotStarted",
  { code: Schema.Int, message: Schema.String }
) {}

/** A command that ran for the caller ended with this exit code; the process exits with it too. */
export class CommandEnded extends Schema.TaggedError<CommandEnded>("@daybook/cli/CommandEnded")("CommandEnded", {
  code: Schema.Int
}) {}

/** The error of work that a server does not offer. */
export const needsDatabase = () =>
  new UsageError({
    message: "this needs the database: run it where the server runs, without --server and DAYBOOK_SERVER"
  })
