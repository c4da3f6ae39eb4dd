/** `daybook fork`: a new session with the history of another one. Spec: CL-216. */
import { Effect } from "effect"
import { Sessions } from "@daybook/core/session/Sessions"
import * as Flags from "../arguments/Flags.ts"
import * as Folder from "../arguments/Folder.ts"
import * as MessageReference from "../arguments/MessageReference.ts"
import * as SessionReference from "../arguments/SessionReference.ts"
import { verb } from "../arguments/Verb.ts"
import { withSessions } from "../host/Runtime.ts"
import { jsonLine } from "../render/Plain.ts"
import { visible } from "../render/Visible.ts"
import { Output } from "../terminal/Output.ts"

const title = Flags.text("title", "TITLE", "the title of the fork (default: that of SESSION)")

const run = Effect.fn("Command.fork")(function* (given: {
  readonly session: string
  readonly message: string | undefined
  readonly title: string | undefined
  readonly json: boolean
}) {
  const output = yield* Output
  const { id: sessionID } = yield* SessionReference.resolve(given.session, yield* Folder.current)
  const messageID = given.message === undefined ? undefined : yield* MessageReference.resolve(sessionID, given.message)
  const { prompt, session } = yield* (yield* Sessions).fork({ sessionID, messageID, title: given.title })
  if (given.json) {
    const fork = { sessionID: session.id, ...session.forked, ...(prompt === undefined ? {} : { prompt }) }
    return yield* output.write(`${jsonLine(fork, output.terminal)}\n`)
  }
  yield* output.note(`the fork of ${sessionID} is the session:\n`)
  yield* output.write(`${session.id}\n`)
  if (prompt === undefined) return
  const { text } = prompt
  yield* output.note(`it ends before this prompt:\n${output.terminal ? visible(text) : text}\n`)
})

export const fork = verb({
  name: "fork",
  summary: "start a new session from the history of another one",
  words: "SESSION [MESSAGE]",
  details: [
    "SESSION is an id or a title. MESSAGE is an id, the beginning or end of one, or a label, and the last message of the " +
      "fork; if it is a prompt, the fork ends before it. Default: where the session's history continues. The fork has " +
      "the labels of its messages, the session's folder and budget, and has spent nothing. SESSION does not change."
  ],
  given: { session: Flags.one("SESSION"), message: Flags.optional("MESSAGE"), title, json: Flags.json },
  examples: [
    ["daybook fork fix", "a copy of the history of the session called fix"],
    ['daybook fork fix "before the rewrite" --title other', "the same up to a label, with another title"]
  ],
  overServer: true,
  run: ({ json, message, session, title }) => withSessions(run({ session, message: message, title: title, json }))
})
