/** `daybook resume`: runs the session's waiting prompts and unfinished work. Spec: CL-17. */
import * as Args from "@effect/cli/Args"
import * as Command from "@effect/cli/Command"
import { Effect, Option } from "effect"
import { Sessions } from "@daybook/core/session/Sessions"
import * as Flags from "../arguments/Flags.ts"
import * as Folder from "../arguments/Folder.ts"
import * as SessionReference from "../arguments/SessionReference.ts"
import type { Verb } from "../arguments/Verb.ts"
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

export const resume = {
  name: "resume",
  summary: "run a session now: prompts in its inbox, or work that was cut off",
  words: "[SESSION]",
  details: [
    "SESSION is an id or a title. Default: the session used last in this folder, or else the one used last anywhere. " +
      "It runs at least one turn. A tool call that was running when its process died is never run again; the model is told."
  ],
  flags: [Flags.trust, Flags.noReasoning, Flags.json],
  examples: [["daybook resume", "continues the session used last in this folder"]],
  command: Command.make(
    "resume",
    {
      session: Args.optional(Args.text({ name: "SESSION" })),
      trust: Flags.trust.options,
      noReasoning: Flags.noReasoning.options,
      json: Flags.json.options
    },
    ({ json, noReasoning, session, trust }) =>
      withRunning(run(Option.getOrUndefined(session), json, !noReasoning)).pipe(told(trust))
  )
} satisfies Verb
