/** `daybook branch`: continues a session's history at another message. Spec: CL-214, CL-215. */
import { Effect } from "effect"
import { Sessions } from "@daybook/core/session/Sessions"
import * as Flags from "../arguments/Flags.ts"
import * as Folder from "../arguments/Folder.ts"
import * as MessageReference from "../arguments/MessageReference.ts"
import * as SessionReference from "../arguments/SessionReference.ts"
import { verb } from "../arguments/Verb.ts"
import { withConfigured, withSessions } from "../host/Runtime.ts"
import { jsonLine } from "../render/Plain.ts"
import { visible } from "../render/Visible.ts"
import { Output } from "../terminal/Output.ts"

interface Given {
  readonly summary: boolean
  readonly json: boolean
}

const summary = Flags.toggle("summary", "let the model summarise the branch that is left, for the new one")

const run = Effect.fn("Command.branch")(function* (session: string, message: string, given: Given) {
  const output = yield* Output
  const { id: sessionID } = yield* SessionReference.resolve(session, yield* Folder.current)
  const messageID = yield* MessageReference.resolve(sessionID, message)
  if (given.summary) yield* output.note("… summarising the branch that is left\n")
  const branched = yield* (yield* Sessions).branch({ sessionID, messageID, summary: given.summary })
  if (given.json) return yield* output.write(`${jsonLine({ sessionID, ...branched }, output.terminal)}\n`)
  const place = branched.leafID === undefined ? "before the first message" : `after ${branched.leafID}`
  yield* output.note(
    branched.moved ? `${sessionID} continues ${place}\n` : `${sessionID} continues ${place} already: nothing changed\n`
  )
  if (branched.prompt === undefined) return
  const { text } = branched.prompt
  yield* output.note("the prompt that was there, to be edited and sent again:\n")
  yield* output.write(`${output.terminal ? visible(text) : text}\n`)
})

export const branch = verb({
  name: "branch",
  summary: "continue a session's history at an earlier message or another branch",
  words: "SESSION MESSAGE",
  details: [
    "SESSION is an id or a title. MESSAGE is an id, the beginning or end of one, or a label; daybook tree shows them. " +
      "The next prompt follows that message, and the model sees nothing of what came after it. All messages stay in the " +
      "tree. If MESSAGE is a prompt, history continues before it, and its text is printed. The session must not run."
  ],
  given: { session: Flags.one("SESSION"), message: Flags.one("MESSAGE"), summary, json: Flags.json },
  examples: [
    ["daybook branch fix 01JD", "continues after the message whose id ends in 01JD"],
    [
      'daybook branch fix "before the rewrite" --summary',
      "continues at a label, with a summary of what was tried since"
    ]
  ],
  overServer: true,
  run: ({ json, message, session, summary }) => {
    const branching = run(session, message, { json, summary })
    // Only a summary needs the configured models.
    return summary ? withConfigured(branching) : withSessions(branching)
  }
})
