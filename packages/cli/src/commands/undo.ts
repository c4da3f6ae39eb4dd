/** `daybook undo`: takes back the last prompt of a session, files included. Spec: CL-275 to CL-280. */
import { Effect, Schema } from "effect"
import { Sessions } from "@daybook/core/session/Sessions"
import { Undone, type UndoneFile } from "@daybook/core/session/SessionOptions"
import { SessionStore } from "@daybook/log/store/SessionStore"
import * as Flags from "../arguments/Flags.ts"
import * as Folder from "../arguments/Folder.ts"
import * as SessionReference from "../arguments/SessionReference.ts"
import { type FieldValues, verb } from "../arguments/Verb.ts"
import { placeOf } from "../host/HistoryPlace.ts"
import { withConfigured } from "../host/Runtime.ts"
import { oneLine, visible } from "../render/Plain.ts"
import { many } from "../support/Amounts.ts"
import { NotFound, UndoIncomplete } from "../support/Errors.ts"
import { Output, writeJson } from "../terminal/Output.ts"

/** Files in the account that a person reads; --json has more. */
const shown = 200

const words: Readonly<Record<UndoneFile["action"], string>> = {
  restored: "restored",
  recreated: "recreated",
  deleted: "deleted",
  already: "unchanged",
  conflict: "left"
}

const fileLine = ({ action, path, reason }: UndoneFile): string =>
  `${words[action].padEnd(9)}  ${oneLine(path, 400)}${reason === undefined ? "" : `: ${oneLine(reason, 400)}`}\n`

export const fileLines = ({ files }: Undone): string => {
  const rest = files.length - shown
  return `${files.slice(0, shown).map(fileLine).join("")}${rest > 0 ? `and ${many(rest, "more file")}; --json lists them\n` : ""}`
}

/** What the account is of. */
export interface AccountOf {
  readonly redo: boolean
  /** Where the history goes on, in words; undefined where the screen says it. */
  readonly place: string | undefined
}

/** What the files and the history became, for stderr. */
export const undoNote = ({ place, redo }: AccountOf, account: Undone): string => {
  const { counts, files, omitted, problems, prompt, undone } = account
  const changed = counts.restored + counts.recreated + counts.deleted
  const left = counts.conflicts === 0 ? "" : `, ${many(counts.conflicts, "file")} left as they are`
  const asked = prompt === undefined ? "the last prompt" : `"${oneLine(prompt.text, 60)}"`
  const what = redo ? "took back the last undo" : `took back ${asked}`
  const ahead = redo ? "the last undo would be taken back" : `${asked} would be taken back`
  const where = place === undefined ? "" : `; ${place}`
  const lines = [
    ...problems.map((problem) => `files of some turns stay as they are: ${oneLine(problem, 400)}`),
    ...(omitted.length === 0
      ? []
      : [
          `the snapshots do not hold ${omitted
            .slice(0, 10)
            .map((name) => oneLine(name, 400))
            .join(", ")}`
        ]),
    ...(files.length === 0 ? ["the snapshots hold no changed file: only the history changes"] : []),
    undone
      ? `${what}: ${many(changed, "file")} put back${left}${where}`
      : `dry run, nothing was changed: ${ahead}, ${many(changed, "file")} put back${left}${where}`
  ]
  return lines.map((line) => `${line}\n`).join("")
}

const given = {
  session: Flags.optional("SESSION"),
  dryRun: Flags.toggle("dry-run", "say what would happen, and change nothing"),
  force: Flags.toggle("force", "also restore files that changed after the prompt"),
  redo: Flags.toggle("redo", "take back the last undo instead of a prompt"),
  json: Flags.json
}

/** The named session, else the last used one of this folder. */
const sessionOf = Effect.fnUntraced(function* (session: string | undefined) {
  const directory = yield* Folder.current
  if (session !== undefined) return yield* SessionReference.resolve(session, directory)
  const [last] = (yield* (yield* SessionStore).list({ directory, limit: 1 })).items
  return last ?? (yield* new NotFound({ message: "this folder has no session; name one: daybook sessions lists them" }))
})

/** In the order of the fields, on a database and over a server. */
const encode = Schema.encodeSync(Undone)

const run = Effect.fn("Command.undo")(function* (options: FieldValues<typeof given>) {
  const output = yield* Output
  const { id: sessionID, title = sessionID } = yield* sessionOf(options.session)
  const { redo, undo } = yield* Sessions
  const account = yield* (options.redo ? redo : undo)({ sessionID, dryRun: options.dryRun, force: options.force })
  if (options.json) yield* writeJson({ sessionID, ...encode(account) })
  else {
    yield* output.note(fileLines(account))
    const place = yield* placeOf(sessionID, account.leafID)
    yield* output.note(
      undoNote(
        { redo: options.redo, place: `"${oneLine(title, 60)}" ${account.undone ? "goes" : "would go"} on ${place}` },
        account
      )
    )
    if (account.undone && account.prompt !== undefined) {
      const { text } = account.prompt
      yield* output.note("the prompt that was taken back, to be edited and sent again:\n")
      yield* output.write(`${output.terminal ? visible(text) : text}\n`)
    }
  }
  if (account.counts.conflicts > 0) {
    const advice = account.undone ? "compare them yourself" : "--force restores those that changed since"
    return yield* new UndoIncomplete({
      message: `${account.counts.conflicts} files ${account.undone ? "were" : "would be"} left as they are: ${advice}`
    })
  }
})

export const undo = verb({
  name: "undo",
  summary: "take back the last prompt of a session, files included",
  words: "[SESSION]",
  details: [
    "SESSION is an id, a title, or the beginning of either; without it, the last used session of this folder. Files that the prompt's turns changed " +
      "get their earlier content, and history continues before the prompt, whose text is printed. Running it again goes " +
      "further back. Files are snapshotted where the session works in a git work tree; ignored files are not.",
    "--redo takes back the last undo: files and history are again as before it. It is refused, and changes nothing, if " +
      "the session went on since, or if files did, unless --force is given.",
    "A file that changed since is left and named, and the exit code is 1; --force restores it too. The session must not run."
  ],
  given,
  examples: [
    ["daybook undo --dry-run", "shows what the last prompt of this folder's session changed"],
    ["daybook undo fix", "takes back the last prompt of this session"],
    ["daybook undo fix --redo", "takes back that undo"]
  ],
  overServer: true,
  run: (options) => withConfigured(run(options))
})
