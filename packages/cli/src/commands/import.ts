/** `daybook import`: turns session logs of other tools into sessions. Spec: CL-220..CL-229. */
import * as Args from "@effect/cli/Args"
import * as Command from "@effect/cli/Command"
import { Effect, Option } from "effect"
import * as Flags from "../arguments/Flags.ts"
import type { Verb } from "../arguments/Verb.ts"

const dialects = ["auto", "xcsh", "pi", "thread", "claude-code", "codex"] as const

const dialect = Flags.choice("dialect", dialects, "the format of the logs (default: auto, by their content)")
const dryRun = Flags.toggle("dry-run", "read the logs and report, but store nothing")
const asNew = Flags.toggle("as-new", "import the logs as other sessions beside earlier imports of them")

export const importVerb = {
  name: "import",
  summary: "import session logs of other tools",
  words: "[PATH...]",
  details: [
    "PATH is a log file, a folder that is searched for logs, or a quoted pattern such as '~/logs/**/*.jsonl'. Without PATH " +
      "it lists the logs in the folders where the tools keep them, and imports nothing. The logs are only read.",
    "An imported session is an ordinary session in the folder that its log names, also if that folder no longer exists: " +
      "prompt it, branch it, export it. Importing a log again adds what the log has more than before. A log that changed " +
      "otherwise, or whose session was continued here, is refused: use --as-new.",
    "Damaged parts of a log are skipped and reported with line and byte offset. The exit code is 1 if a log could not be " +
      "imported."
  ],
  flags: [dialect, dryRun, asNew, Flags.json],
  examples: [
    ["daybook import", "lists the logs on this machine"],
    ["daybook import ~/.claude/projects", "imports the sessions of Claude Code"],
    ["daybook import --dry-run session.jsonl", "shows what one log holds"]
  ],
  command: Command.make(
    "import",
    {
      paths: Args.repeated(Args.text({ name: "PATH" })),
      dialect: dialect.options,
      dryRun: dryRun.options,
      asNew: asNew.options,
      json: Flags.json.options
    },
    ({ dialect, ...given }) =>
      Effect.gen(function* () {
        const work = yield* Effect.promise(() => import("../host/ImportWork.ts"))
        yield* work.run({ ...given, dialect: Option.getOrElse(dialect, () => "auto" as const) })
      })
  )
} satisfies Verb
