/**
 * `daybook shell checkpoint`, `checkpoints` and `restore`: the files of a shell's workspace. Spec: SL-187 in specs/shell.md.
 */
import * as Args from "@effect/cli/Args"
import * as Command from "@effect/cli/Command"
import { Effect, Option } from "effect"
import * as Flags from "../../arguments/Flags.ts"
import type { Verb } from "../../arguments/Verb.ts"

const id = Args.text({ name: "ID" })
const calls = Effect.promise(() => import("../../host/ShellCalls.ts"))

export const checkpoint = {
  name: "checkpoint",
  summary: "keeps the files of a shell's workspace",
  words: "ID [LABEL]",
  details: [
    "Keeps the files of the workspace that the shell was created with, after the commands before, and prints the id of the " +
      "checkpoint. Ignored files and files with secrets are not kept."
  ],
  flags: [Flags.json],
  examples: [['daybook shell checkpoint 1_local "before the upgrade"', "keeps the files under a label"]],
  command: Command.make(
    "checkpoint",
    { id, label: Args.optional(Args.text({ name: "LABEL" })), json: Flags.json.options },
    ({ label, ...rest }) =>
      Effect.flatMap(calls, (work) => work.checkpoint({ ...rest, label: Option.getOrUndefined(label) }))
  )
} satisfies Verb

export const checkpoints = {
  name: "checkpoints",
  summary: "lists the checkpoints of a shell",
  words: "ID",
  details: [
    "Prints a line for each checkpoint, the newest first: id, time (UTC), who made it (asked, command or restore), and its " +
      "label or the command that came after it."
  ],
  flags: [Flags.json],
  examples: [["daybook shell checkpoints 1_local", "the checkpoints of the shell"]],
  command: Command.make("checkpoints", { id, json: Flags.json.options }, (given) =>
    Effect.flatMap(calls, (work) => work.checkpoints(given))
  )
} satisfies Verb

export const restore = {
  name: "restore",
  summary: "brings the files back to a checkpoint",
  words: "ID [CHECKPOINT]",
  details: [
    "Brings the files of the workspace back to a checkpoint, by default the most recent one that no restore made, and prints " +
      "each file with what happened to it: + is back, ~ is changed back, - is removed. Files that came later are removed; " +
      "ignored files stay. The state before is kept as a checkpoint too."
  ],
  flags: [Flags.json],
  examples: [
    ["daybook shell restore 1_local", "undoes the last command that changed files"],
    ["daybook shell restore 1_local 3f9c01", "brings the files back to that checkpoint"]
  ],
  command: Command.make(
    "restore",
    { id, checkpointID: Args.optional(Args.text({ name: "CHECKPOINT" })), json: Flags.json.options },
    ({ checkpointID, ...rest }) =>
      Effect.flatMap(calls, (work) => work.restore({ ...rest, checkpointID: Option.getOrUndefined(checkpointID) }))
  )
} satisfies Verb
