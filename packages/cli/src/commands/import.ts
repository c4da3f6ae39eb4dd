/** `daybook import`: turns session logs of other tools into sessions. Spec: CL-220..CL-229. */
import { Effect } from "effect"
import * as Flags from "../arguments/Flags.ts"
import { verb } from "../arguments/Verb.ts"

const dialects = ["auto", "xcsh", "pi", "thread", "claude-code", "codex"] as const

const dialect = Flags.choice("dialect", dialects, "the format of the logs (default: auto, by their content)")
const dryRun = Flags.toggle("dry-run", "read the logs and report, but store nothing")
const asNew = Flags.toggle("as-new", "import the logs as other sessions beside earlier imports of them")

export const importVerb = verb({
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
  given: { paths: Flags.many("PATH"), dialect, dryRun, asNew, json: Flags.json },
  examples: [
    ["daybook import", "lists the logs on this machine"],
    ["daybook import ~/.claude/projects", "imports the sessions of Claude Code"],
    ["daybook import --dry-run session.jsonl", "shows what one log holds"]
  ],
  run: ({ dialect, ...given }) =>
    Effect.gen(function* () {
      const work = yield* Effect.promise(() => import("../host/ImportWork.ts"))
      yield* work.run({ ...given, dialect: dialect ?? "auto" })
    })
})
