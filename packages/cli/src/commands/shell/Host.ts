/** `daybook shell host`: keeps live shells. Spec: SL-170..SL-177 in specs/shell.md. */
import { Effect } from "effect"
import { verb } from "../../arguments/Verb.ts"

export const host = verb({
  name: "host",
  summary: "keeps the shells; create starts it in the background",
  words: "",
  details: [
    "A shell outlives the command that created it, because a host keeps it: one process for each data folder, which listens " +
      "on a socket that only its user can use. daybook shell create starts one if none runs, with the settings and the " +
      "environment of that moment. It ends a minute after its last shell closed. A signal closes every shell and ends it.",
    "This verb runs it in the foreground, for example under a supervisor. It prints ready when it listens."
  ],
  given: {},
  examples: [["daybook shell host", "keeps shells until a signal"]],
  run: () =>
    Effect.gen(function* () {
      const { run } = yield* Effect.promise(() => import("../../host/ShellHostProcess.ts"))
      yield* run()
    })
})
