/** `daybook shell`: live shells. Each action is a file in `shell/`. Spec: specs/shell.md. */
import * as Command from "@effect/cli/Command"
import type { Verb } from "../arguments/Verb.ts"
import { watch } from "./shell/Watch.ts"

export const shell = {
  name: "shell",
  summary: "watch live shells",
  words: "ACTION",
  details: ["A live shell outlives one command: its folder, variables and jobs persist."],
  flags: [],
  actions: [watch],
  examples: [["daybook shell watch --follow", "the commands of all live shells, old ones first, then new ones"]],
  command: Command.make("shell").pipe(Command.withSubcommands([watch.command]))
} satisfies Verb
