/** `daybook shell output`: the whole output of a command. Spec: SL-186 in specs/shell.md. */
import { Effect } from "effect"
import * as Flags from "../../arguments/Flags.ts"
import { verb } from "../../arguments/Verb.ts"

const stderr = Flags.toggle("stderr", "what the command printed to stderr, instead of stdout")

export const output = verb({
  name: "output",
  summary: "prints the whole output of a command",
  words: "HANDLE",
  details: [
    "Prints the whole output of a command, without secrets, by the handle in a result from which something was left out: of " +
      "daybook shell exec and of daybook mcp. The outputs stay on disk when their shell and its host have ended, until newer " +
      "ones take their place. With --json, each page is a line."
  ],
  given: { handle: Flags.one("HANDLE"), stderr, json: Flags.json },
  examples: [["daybook shell output 1_local.3.267733b9 | less", "everything that the command printed"]],
  run: (given) =>
    Effect.gen(function* () {
      const { run } = yield* Effect.promise(() => import("../../host/ShellOutput.ts"))
      yield* run(given)
    })
})
