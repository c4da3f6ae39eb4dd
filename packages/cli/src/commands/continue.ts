/** `daybook continue`: prompts the most recent session of this terminal or folder. Spec: CL-260..CL-262. */
import * as Command from "@effect/cli/Command"
import { Effect } from "effect"
import * as Folder from "../arguments/Folder.ts"
import type { Verb } from "../arguments/Verb.ts"
import { recent } from "../host/RecentSession.ts"
import { withReader } from "../host/Runtime.ts"
import { sessionJson, sessionTable } from "../render/SessionLine.ts"
import { Output } from "../terminal/Output.ts"
import { admit, promptFlags, promptOptions } from "./prompt.ts"

/** The session to continue from the current folder. */
const found = Effect.flatMap(Folder.current, (directory) => withReader(recent(directory)))

const show = Effect.fn("Command.continue.show")(function* (json: boolean) {
  const output = yield* Output
  const session = yield* found
  yield* output.write(json ? `${sessionJson(session, output.terminal)}\n` : sessionTable([session]))
})

export const continueLast = {
  name: "continue",
  summary: "prompt the session that was used last here",
  words: "[TEXT...]",
  details: [
    "It continues the session that this terminal prompted last from this folder, else the one used last in this folder. " +
      "Sessions that agents created do not count. Without text, it prints which session that is, and changes nothing.",
    "The text is the words; it is stdin if the only word is a dash. The options are those of daybook prompt."
  ],
  flags: promptFlags,
  examples: [
    ["daybook continue", "shows the session that would be continued"],
    ['daybook continue "Now the tests."', "prompts it"],
    ["git diff | daybook continue -", "the prompt is the output of git diff"]
  ],
  command: Command.make("continue", promptOptions, (given) =>
    given.words.length === 0 && !given.stdin
      ? show(given.json)
      : admit(given, {
          cwd: undefined,
          reference: Effect.map(found, ({ id }) => ({ type: "id" as const, id })),
          id: undefined
        })
  )
} satisfies Verb
