/** `daybook shell attach`: a console on a live shell. Spec: SL-190..SL-194 in specs/shell.md. */
import { Effect } from "effect"
import * as Flags from "../../arguments/Flags.ts"
import { verb } from "../../arguments/Verb.ts"

export const attach = verb({
  name: "attach",
  summary: "a console on a shell, line by line",
  words: "ID",
  details: [
    "Reads commands at the terminal and runs each in the shell, with its output as it comes. A command with an open quote, " +
      "group or here-document goes on in the next line. Ctrl-C stops the running command, and clears the line at the prompt. " +
      "Ctrl-D leaves the shell open; exit closes it. Commands get no input, and no terminal of their own: vi does not work.",
    "If stdin is no terminal, the commands are its lines, and the exit code is that of the last one."
  ],
  given: { id: Flags.one("ID") },
  examples: [
    ["daybook shell attach 1_local", "a console; Ctrl-D leaves it"],
    ["daybook shell attach 1_local <deploy.sh", "runs the lines of a file, one after another"]
  ],
  run: (given) =>
    Effect.gen(function* () {
      const { run } = yield* Effect.promise(() => import("../../host/ShellConsole.ts"))
      yield* run(given)
    })
})
