/** `daybook files`: writes, checks and repairs the plain files of sessions. Spec: CL-111..CL-114 in specs/cli.md. */
import { Effect } from "effect"
import * as Flags from "../arguments/Flags.ts"
import { verb } from "../arguments/Verb.ts"
import * as DatabasePath from "../config/DatabasePath.ts"
import type { Action } from "../host/FilesWork.ts"
import { oneLine } from "../render/Plain.ts"
import { UsageError } from "../support/Errors.ts"
import { didYouMean } from "../support/Nearest.ts"

const root = Flags.text("root", "DIR", "the folder of the files (default: DAYBOOK_ROOT, else ctx beside the database)")
const session = Flags.text("session", "ID|TITLE", "only this session")

const actions: ReadonlyArray<Action> = ["export", "verify", "rebuild"]

const actionOf = (words: ReadonlyArray<string>): Effect.Effect<Action, UsageError> => {
  const [word, more] = words
  const action = actions.find((each) => each === word)
  if (action !== undefined && more === undefined) return Effect.succeed(action)
  const got = word === undefined ? "nothing" : `"${oneLine(words.join(" "), 80)}"`
  return new UsageError({
    message: `daybook files: expected ${actions.join(", ")}, got ${got}${didYouMean(word ?? "", actions)}`
  })
}

export const files = verb({
  name: "files",
  summary: "write, check or repair the plain files of sessions",
  words: "export|verify|rebuild",
  details: [
    "export brings the files to the end of the log, continuing where it stopped. verify compares them with the log, byte " +
      "for byte, and changes nothing. rebuild rewrites the files that differ. A file that was changed by others is reported, " +
      "and kept beside its replacement under a name that contains .aside.",
    "While daybook serve runs, only it may write the files of its root; verify still works. The exit code of verify is 1 " +
      "if a file differs."
  ],
  given: { words: Flags.many("ACTION"), root, session, json: Flags.json },
  examples: [
    ["daybook files export", "writes every session as files for less, grep and ctx"],
    ["daybook files verify --json | jq .path", "prints the files that differ"],
    ["daybook files rebuild --session fix", "rewrites one session's files from its events"]
  ],
  run: (given) =>
    Effect.gen(function* () {
      const action = yield* actionOf(given.words)
      const filename = yield* DatabasePath.existing
      const { run } = yield* Effect.promise(() => import("../host/FilesWork.ts"))
      yield* run(filename, {
        action,
        root: given.root,
        session: given.session,
        json: given.json
      })
    })
})
