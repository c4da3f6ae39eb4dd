/** `daybook resume`: go on with what a session has to do. Spec: CL-17. */
import { Sessions } from "@daybook/core"
import { Args, Command } from "@effect/cli"
import { Effect, Option } from "effect"
import * as Flags from "../Flags.ts"
import * as Folder from "../Folder.ts"
import { withRunning } from "../Runtime.ts"
import * as SessionReference from "../SessionReference.ts"
import * as Turn from "../Turn.ts"
import type { Verb } from "../Verb.ts"

const run = Effect.fn("Command.resume")(function* (given: string | undefined, json: boolean) {
  const sessions = yield* Sessions
  const session = yield* SessionReference.resolve(given, yield* Folder.current)
  yield* Turn.follow({ sessionID: session.id, json, start: Turn.resumed(session.id, sessions.resume(session.id)) })
})

export const resume = {
  name: "resume",
  summary: "run a session now: what waits in its inbox, or what was cut off",
  words: "[SESSION]",
  details: [
    "SESSION is an id or a title; without it, the session used last in this folder, else the one used last of all. " +
      "At least one turn is run. A tool call that was under way when its process died is never run again; the model is told."
  ],
  flags: [Flags.json],
  examples: [["daybook resume", "goes on with the session used last in this folder"]],
  command: Command.make(
    "resume",
    { session: Args.optional(Args.text({ name: "SESSION" })), json: Flags.json.options },
    ({ session, json }) => withRunning(run(Option.getOrUndefined(session), json))
  )
} satisfies Verb
