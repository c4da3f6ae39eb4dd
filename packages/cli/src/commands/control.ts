/** `daybook interrupt`, `switch`, `rename`, `remove`: the facade's verbs. Spec: CL-17, CL-18. */
import * as Args from "@effect/cli/Args"
import * as Command from "@effect/cli/Command"
import { Effect, Either, Option } from "effect"
import { Sessions } from "@daybook/core/session/Sessions"
import { modelText } from "@daybook/log/domain/Values"
import { EventLog } from "@daybook/log/log/EventLog"
import * as Flags from "../arguments/Flags.ts"
import * as Folder from "../arguments/Folder.ts"
import * as SessionReference from "../arguments/SessionReference.ts"
import type { Verb } from "../arguments/Verb.ts"
import * as DatabasePath from "../config/DatabasePath.ts"
import { agentNamed, readModel, withConfigured, withSessions } from "../host/Runtime.ts"
import { oneLine } from "../render/Plain.ts"
import { NotFound, UsageError } from "../support/Errors.ts"
import { Output } from "../terminal/Output.ts"
import * as Question from "../terminal/Question.ts"

const sessionArgument = Args.optional(Args.text({ name: "SESSION" }))
const whichSession =
  "SESSION is an id or a title. Default: the session used last in this folder, or else the one used last anywhere."

const resolve = (session: Option.Option<string>) =>
  Effect.flatMap(Folder.current, (directory) => SessionReference.resolve(Option.getOrUndefined(session), directory))

const runInterrupt = Effect.fn("Command.interrupt")(function* (given: Option.Option<string>) {
  const sessions = yield* Sessions
  const session = yield* resolve(given)
  yield* sessions.interrupt(session.id)
  yield* (yield* Output).note(`${session.id} is not running; its inbox is kept\n`)
})

export const interrupt = {
  name: "interrupt",
  summary: "stop a session's work, in any process; keep its inbox",
  words: "[SESSION]",
  details: [whichSession, "It returns when the work has settled. An idle session does not change."],
  flags: [],
  examples: [["daybook interrupt fix", "stops the turn of the session called fix"]],
  command: Command.make("interrupt", { session: sessionArgument }, ({ session }) => withSessions(runInterrupt(session)))
} satisfies Verb

const model = Flags.text("model", "P/M", "answer with this model from the next turn on, provider/model")
const agent = Flags.text("agent", "A", "behave as this agent from the next turn on")

const runSwitch = Effect.fn("Command.switch")(function* (options: {
  readonly session: Option.Option<string>
  readonly model: Option.Option<string>
  readonly agent: Option.Option<string>
}) {
  if (Option.isNone(options.model) && Option.isNone(options.agent)) {
    return yield* new UsageError({ message: "nothing to switch: give --model P/M, --agent A, or both" })
  }
  const sessions = yield* Sessions
  // Everything is checked before anything is changed.
  const model = Option.isSome(options.model) ? yield* readModel(options.model.value) : undefined
  const session = yield* resolve(options.session)
  const agent = Option.isSome(options.agent)
    ? yield* agentNamed(options.agent.value, session.location.directory)
    : undefined
  if (model !== undefined) yield* sessions.switchModel(session.id, model)
  if (agent !== undefined) yield* sessions.switchAgent(session.id, agent)
  const now = [model === undefined ? [] : [`model ${modelText(model)}`], agent === undefined ? [] : [`agent ${agent}`]]
  yield* (yield* Output).note(`${session.id}: ${now.flat().join(", ")} from the next turn on\n`)
})

export const switchTo = {
  name: "switch",
  summary: "give a session another model or agent",
  words: "[SESSION]",
  details: [whichSession, "A running turn is not affected; the next one uses the new model and agent."],
  flags: [model, agent],
  examples: [["daybook switch fix --model anthropic/claude-sonnet-5-5", "the next turn is answered by this model"]],
  command: Command.make("switch", { session: sessionArgument, model: model.options, agent: agent.options }, (given) =>
    withConfigured(runSwitch(given))
  )
} satisfies Verb

const runRename = Effect.fn("Command.rename")(function* (reference: string, title: string) {
  if (title.trim() === "") return yield* new UsageError({ message: "the title is empty" })
  const sessions = yield* Sessions
  const session = yield* resolve(Option.some(reference))
  yield* sessions.rename(session.id, title)
})

export const rename = {
  name: "rename",
  summary: "give a session a title",
  words: "SESSION TITLE",
  details: [],
  flags: [],
  examples: [['daybook rename ses_01JD "login page"', 'commands find the session as "login page" from now on']],
  command: Command.make(
    "rename",
    { session: Args.text({ name: "SESSION" }), title: Args.text({ name: "TITLE" }) },
    ({ session, title }) => withSessions(runRename(session, title))
  )
} satisfies Verb

const yes = Flags.toggle("yes", "do not ask")

/** The session's id if the log has removed it: a command that was killed may have left its files. */
const removedBefore = Effect.fnUntraced(function* (reference: string) {
  const log = yield* EventLog
  for (let page = yield* log.removals(); page.length > 0; page = yield* log.removals({ after: page.at(-1)?.number })) {
    for (const { sessionID } of page) if (sessionID === reference) return sessionID
  }
  return undefined
})

const runRemove = Effect.fn("Command.remove")(function* (reference: string, sure: boolean) {
  const sessions = yield* Sessions
  const found = yield* Effect.either(resolve(Option.some(reference)))
  if (Either.isLeft(found)) {
    const removed = found.left._tag === "SessionNotFound" ? yield* removedBefore(reference) : undefined
    if (removed === undefined) return yield* found.left
    yield* (yield* Output).note(`${removed} was removed before; removing what is left of its files\n`)
    return removed
  }
  const session = found.right
  if (!sure) {
    const name = session.title === undefined ? session.id : `${session.id} "${oneLine(session.title, 60)}"`
    const answer = yield* Question.ask(`Remove ${name} with all its events? [y/N] `)
    if (answer === undefined) {
      return yield* new UsageError({
        message: `removing ${session.id} cannot be undone; give --yes to confirm without a terminal`
      })
    }
    if (!/^y(?:es)?$/i.test(answer.trim())) return yield* new NotFound({ message: `${session.id} was kept` })
  }
  yield* sessions.remove(session.id)
  return session.id
})

export const remove = {
  name: "remove",
  summary: "delete a session and everything that belongs to it",
  words: "SESSION",
  details: [
    "It asks first. A running session is interrupted. This cannot be undone.",
    "Its files at DAYBOOK_ROOT, else ctx beside the database, are removed too: by daybook serve if it runs there, else " +
      "by this command. Files at other roots go with the next daybook files export --root DIR. Changed files stay there " +
      "under a name that contains .aside. Outputs of its live shells are removed. Backups and archives keep the session: delete them yourself."
  ],
  flags: [yes],
  examples: [["daybook remove ses_01JD --yes", "deletes it without asking"]],
  command: Command.make("remove", { session: Args.text({ name: "SESSION" }), yes: yes.options }, (given) =>
    Effect.gen(function* () {
      const sessionID = yield* withSessions(runRemove(given.session, given.yes))
      const { run } = yield* Effect.promise(() => import("../host/RemovalWork.ts"))
      yield* run(yield* DatabasePath.existing, sessionID)
    })
  )
} satisfies Verb
