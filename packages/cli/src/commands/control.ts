/** `daybook interrupt`, `switch`, `rename`: the facade's verbs. Spec: CL-17, CL-18. */
import { Effect } from "effect"
import { Sessions } from "@daybook/core/session/Sessions"
import { modelText } from "@daybook/log/domain/Values"
import * as Flags from "../arguments/Flags.ts"
import * as SessionReference from "../arguments/SessionReference.ts"
import { type FieldValues, verb } from "../arguments/Verb.ts"
import { agentNamed, readModel, withConfigured, withSessions, sessionWord } from "../host/Runtime.ts"
import { UsageError } from "../support/Errors.ts"
import { Output } from "../terminal/Output.ts"

const runInterrupt = Effect.fn("Command.interrupt")(function* (given: string | undefined) {
  const sessions = yield* Sessions
  const session = yield* SessionReference.resolveHere(given)
  yield* sessions.interrupt(session.id)
  yield* (yield* Output).note(`${session.id} is not running; its inbox is kept\n`)
})

export const interrupt = verb({
  name: "interrupt",
  summary: "stop a session's work, in any process; keep its inbox",
  words: "[SESSION]",
  details: [SessionReference.lastUsed, "It returns when the work has settled. An idle session does not change."],
  given: { session: Flags.optional("SESSION") },
  examples: [["daybook interrupt fix", "stops the turn of the session called fix"]],
  overServer: true,
  run: ({ session }) => withSessions(runInterrupt(session))
})

const switchGiven = {
  session: Flags.optional("SESSION"),
  model: Flags.text("model", "P/M", "answer with this model from the next turn on, provider/model"),
  agent: Flags.text("agent", "A", "behave as this agent from the next turn on")
}

const runSwitch = Effect.fn("Command.switch")(function* (options: FieldValues<typeof switchGiven>) {
  if (options.model === undefined && options.agent === undefined) {
    return yield* new UsageError({ message: "nothing to switch: give --model P/M, --agent A, or both" })
  }
  const sessions = yield* Sessions
  // Everything is checked before anything is changed.
  const model = options.model !== undefined ? yield* readModel(options.model) : undefined
  const session = yield* SessionReference.resolveHere(options.session)
  const agent = options.agent !== undefined ? yield* agentNamed(options.agent, session.location.directory) : undefined
  if (model !== undefined) yield* sessions.switchModel(session.id, model)
  if (agent !== undefined) yield* sessions.switchAgent(session.id, agent)
  const now = [model === undefined ? [] : [`model ${modelText(model)}`], agent === undefined ? [] : [`agent ${agent}`]]
  yield* (yield* Output).note(`${session.id}: ${now.flat().join(", ")} from the next turn on\n`)
})

export const switchTo = verb({
  name: "switch",
  summary: "give a session another model or agent",
  words: "[SESSION]",
  details: [SessionReference.lastUsed, "A running turn is not affected; the next one uses the new model and agent."],
  given: switchGiven,
  examples: [["daybook switch fix --model anthropic/claude-sonnet-5-5", "the next turn is answered by this model"]],
  overServer: true,
  run: (given) => withConfigured(runSwitch(given))
})

const runRename = Effect.fn("Command.rename")(function* (reference: string, title: string) {
  if (title.trim() === "") return yield* new UsageError({ message: "the title is empty" })
  const sessions = yield* Sessions
  const session = yield* SessionReference.resolveHere(reference)
  yield* sessions.rename(session.id, title)
})

export const rename = verb({
  name: "rename",
  summary: "give a session a title",
  words: "SESSION TITLE",
  details: [],
  given: { session: sessionWord, title: Flags.one("TITLE") },
  examples: [['daybook rename ses_01JD "login page"', 'commands find the session as "login page" from now on']],
  overServer: true,
  run: ({ session, title }) => withSessions(runRename(session, title))
})
