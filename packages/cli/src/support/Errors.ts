/** Defines the command's own errors, in addition to those of the runtime. Exit codes: render/Failure.ts. */
import { Predicate, Schema } from "effect"

/** The class of an error that is a sentence. */
const sentence =
  <Self>() =>
  <Tag extends string>(tag: Tag) =>
    Schema.TaggedError<Self>(`@daybook/cli/${tag}`)(tag, { message: Schema.String })

/** The command line, the environment or an input cannot be used. */
export class UsageError extends sentence<UsageError>()("UsageError") {}

/** The command names something that does not exist. */
export class NotFound extends sentence<NotFound>()("NotFound") {}

/** A verb needs a session, and there is none. */
export const noSessions = () =>
  new NotFound({ message: "there are no sessions yet: daybook prompt creates the first one" })

/** Whether the database of PostgreSQL has no tables of Daybook. */
export const isMissing = (error: unknown): boolean =>
  Predicate.isTagged(error, "DatabaseError") && Predicate.hasProperty(error, "reason") && error.reason === "not-found"

/** The path of the database cannot be used. */
export class DatabaseProblem extends sentence<DatabaseProblem>()("DatabaseProblem") {}

/** `daybook doctor` found the database damaged or inconsistent. */
export class DatabaseUnsound extends sentence<DatabaseUnsound>()("DatabaseUnsound") {}

/** `daybook doctor` found providers that cannot be used. */
export class ModelUnreachable extends sentence<ModelUnreachable>()("ModelUnreachable") {}

/** `daybook files verify` found files that differ from the log. */
export class FilesDiffer extends sentence<FilesDiffer>()("FilesDiffer") {}

/** `daybook prune` did not prune every session, or the file is still too large. Events already removed stay removed. */
export class PruneIncomplete extends sentence<PruneIncomplete>()("PruneIncomplete") {}

/** `daybook undo` left files as they are. */
export class UndoIncomplete extends sentence<UndoIncomplete>()("UndoIncomplete") {}

/** `daybook discord --check` found channels that the bot cannot work in. */
export class DiscordIncomplete extends sentence<DiscordIncomplete>()("DiscordIncomplete") {}

/** `daybook copy` could not copy every session. The others are copied. */
export class CopyIncomplete extends sentence<CopyIncomplete>()("CopyIncomplete") {}

/** A file that the command writes cannot be written. */
export class FileProblem extends sentence<FileProblem>()("FileProblem") {}

/** `daybook import` could not import every log. The others are imported. */
export class ImportIncomplete extends sentence<ImportIncomplete>()("ImportIncomplete") {}

/** The prompt's activity did not complete, or its answer is not whole. `type` is the error type recorded in the log. */
export class ActivityFailed extends Schema.TaggedError<ActivityFailed>("@daybook/cli/ActivityFailed")(
  "ActivityFailed",
  { message: Schema.String, type: Schema.optionalWith(Schema.String, { exact: true }) }
) {}

/** The prompt's activity completed, but calls of it were refused because nobody allowed them. */
export class CallsRefused extends sentence<CallsRefused>()("CallsRefused") {}

/** Ctrl-C, or another process, ended the activity. The inbox is kept. */
export class Interrupted extends sentence<Interrupted>()("Interrupted") {}

/** A write to stdout or stderr failed, for another reason than a closed reader. */
export class OutputFailed extends sentence<OutputFailed>()("OutputFailed") {}

/** The reader of stdout is gone. */
export class OutputClosed extends Schema.TaggedError<OutputClosed>("@daybook/cli/OutputClosed")("OutputClosed", {}) {}

/** The host of live shells is of another version or database. */
export class HostDiffers extends sentence<HostDiffers>()("HostDiffers") {}

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
