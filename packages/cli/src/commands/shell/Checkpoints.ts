/**
 * `daybook shell checkpoint`, `checkpoints` and `restore`: the files of a shell's workspace. Spec: SL-187 in specs/shell.md.
 */
import { Effect } from "effect"
import * as Flags from "../../arguments/Flags.ts"
import { verb } from "../../arguments/Verb.ts"

const id = Flags.one("ID")
const calls = Effect.promise(() => import("../../host/ShellCalls.ts"))

export const checkpoint = verb({
  name: "checkpoint",
  summary: "keeps the files of a shell's workspace",
  words: "ID [LABEL]",
  details: [
    "Keeps the files of the workspace that the shell was created with, after the commands before, and prints the id of the " +
      "checkpoint. Ignored files and files with secrets are not kept."
  ],
  given: { id, label: Flags.optional("LABEL"), json: Flags.json },
  examples: [['daybook shell checkpoint 1_local "before the upgrade"', "keeps the files under a label"]],
  run: ({ label, ...rest }) => Effect.flatMap(calls, (work) => work.checkpoint({ ...rest, label: label }))
})

export const checkpoints = verb({
  name: "checkpoints",
  summary: "lists the checkpoints of a shell",
  words: "ID",
  details: [
    "Prints a line for each checkpoint, the newest first: id, time (UTC), who made it (asked, command or restore), and its " +
      "label or the command that came after it."
  ],
  given: { id, json: Flags.json },
  examples: [["daybook shell checkpoints 1_local", "the checkpoints of the shell"]],
  run: (given) => Effect.flatMap(calls, (work) => work.checkpoints(given))
})

export const restore = verb({
  name: "restore",
  summary: "brings the files back to a checkpoint",
  words: "ID [CHECKPOINT]",
  details: [
    "Brings the files of the workspace back to a checkpoint, by default the most recent one that no restore made, and prints " +
      "each file with what happened to it: + is back, ~ is changed back, - is removed. Files that came later are removed; " +
      "ignored files stay. The state before is kept as a checkpoint too."
  ],
  given: { id, checkpointID: Flags.optional("CHECKPOINT"), json: Flags.json },
  examples: [
    ["daybook shell restore 1_local", "undoes the last command that changed files"],
    ["daybook shell restore 1_local 3f9c01", "brings the files back to that checkpoint"]
  ],
  run: ({ checkpointID, ...rest }) =>
    Effect.flatMap(calls, (work) => work.restore({ ...rest, checkpointID: checkpointID }))
})
