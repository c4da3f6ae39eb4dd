/** `daybook shell list` and `destroy`: the shells that are open. Spec: SL-185, SL-186 in specs/shell.md. */
import { Effect } from "effect"
import * as Flags from "../../arguments/Flags.ts"
import { verb } from "../../arguments/Verb.ts"
import { UsageError } from "../../support/Errors.ts"

const all = Flags.toggle("all", "every open shell")

const calls = Effect.promise(() => import("../../host/ShellCalls.ts"))

export const list = verb({
  name: "list",
  summary: "lists the open shells",
  words: "",
  details: [
    "Prints a line for each open shell, in the order of their opening: id, transport, working folder, and how long it is " +
      "idle or how many commands run or wait. Without a host it prints nothing, and starts none."
  ],
  given: { json: Flags.json },
  examples: [
    ["daybook shell list", "the open shells"],
    ["daybook shell list --json | jq -r .session_id", "their ids"]
  ],
  overServer: true,
  run: (given) => Effect.flatMap(calls, (work) => work.list(given))
})

export const destroy = verb({
  name: "destroy",
  summary: "closes shells and what runs in them",
  words: "ID...",
  details: [
    "Closes shells, and returns when nothing of them runs any more: neither a running command nor a background job. The " +
      "exit code is 3 if one of them is not open; the others are closed all the same."
  ],
  given: { ids: Flags.many("ID"), all, json: Flags.json },
  examples: [
    ["daybook shell destroy 1_local 2_docker_web", "closes two shells"],
    ["daybook shell destroy --all", "closes every shell"]
  ],
  run: (given) =>
    Effect.gen(function* () {
      if (given.all === given.ids.length > 0) {
        return yield* new UsageError({ message: "shell destroy: give the ids of shells, or --all" })
      }
      yield* (yield* calls).destroy(given)
    })
})
