/** `daybook resume`: runs the session's waiting prompts and unfinished work. Spec: CL-17. */
import { Effect } from "effect"
import { Sessions } from "@daybook/core/session/Sessions"
import * as Flags from "../arguments/Flags.ts"
import * as Folder from "../arguments/Folder.ts"
import * as SessionReference from "../arguments/SessionReference.ts"
import { verb } from "../arguments/Verb.ts"
import { runFollower, told, trusting, withRunning } from "../host/Runtime.ts"

const run = Effect.fn("Command.resume")(function* (given: string | undefined, json: boolean, reasoning: boolean) {
  const sessions = yield* Sessions
  const session = yield* SessionReference.resolve(given, yield* Folder.current)
  yield* Folder.usable(session.location.directory, session.id)
  yield* trusting(session.location.directory)
  const RunFollower = yield* runFollower
  yield* RunFollower.follow({
    sessionID: session.id,
    json,
    reasoning,
    start: RunFollower.resumed(session.id, sessions.resume(session.id))
  })
})

export const resume = verb({
  name: "resume",
  summary: "run a session now: prompts in its inbox, or work that was cut off",
  words: "[SESSION]",
  details: [
    "SESSION is an id or a title. Default: the session used last in this folder, or else the one used last anywhere. " +
      "It runs at least one turn. A tool call that was running when its process died is never run again; the model is told."
  ],
  given: { session: Flags.optional("SESSION"), trust: Flags.trust, noReasoning: Flags.noReasoning, json: Flags.json },
  examples: [["daybook resume", "continues the session used last in this folder"]],
  overServer: true,
  run: ({ json, noReasoning, session, trust }) => withRunning(run(session, json, !noReasoning)).pipe(told(trust))
})
