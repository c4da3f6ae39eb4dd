/** `daybook shell output`: the whole output of a command. Spec: SL-186 in specs/shell.md. */
import * as Args from "@effect/cli/Args"
import * as Command from "@effect/cli/Command"
import { Effect } from "effect"
import * as Flags from "../../arguments/Flags.ts"
import type { Verb } from "../../arguments/Verb.ts"

const stderr = Flags.toggle("stderr", "what the command printed to stderr, instead of stdout")

export const output = {
  name: "output",
  summary: "prints the whole output of a command",
  words: "HANDLE",
  details: [
    "Prints the whole output of a command, without secrets, by the handle in a result from which something was left out: of " +
      "daybook shell exec and of daybook mcp. The outputs stay on disk when their shell and its host have ended, until newer " +
      "ones take their place. With --json, each page is a line."
  ],
  flags: [stderr, Flags.json],
  examples: [["daybook shell output 1_local.3.267733b9 | less", "everything that the command printed"]],
  command: Command.make(
    "output",
    { handle: Args.text({ name: "HANDLE" }), stderr: stderr.options, json: Flags.json.options },
    (given) =>
      Effect.gen(function* () {
        const { run } = yield* Effect.promise(() => import("../../host/ShellOutput.ts"))
        yield* run(given)
      })
  )
} satisfies Verb
