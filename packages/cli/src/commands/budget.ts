/** `daybook budget`: shows or sets what a session may spend. Spec: CL-90, CL-91. */
import { Effect } from "effect"
import { Sessions } from "@daybook/core/session/Sessions"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import type { Budget } from "@daybook/log/domain/Values"
import { SessionStore } from "@daybook/log/store/SessionStore"
import * as Flags from "../arguments/Flags.ts"
import * as Folder from "../arguments/Folder.ts"
import * as SessionReference from "../arguments/SessionReference.ts"
import { verb } from "../arguments/Verb.ts"
import { Remote } from "../host/Remote.ts"
import { configuration, withConfigured, withReader } from "../host/Runtime.ts"
import { budgetText, type Spending } from "../render/BudgetText.ts"
import { jsonLine } from "../render/Plain.ts"
import { UsageError } from "../support/Errors.ts"
import { Output } from "../terminal/Output.ts"

const cost = Flags.value("cost", "USD", "limit the cost to this many US dollars", (given) => {
  const amount = /^\d+(?:\.\d+)?$/.test(given) ? Number(given) : Number.NaN
  return Number.isFinite(amount) ? Effect.succeed(amount) : Effect.fail("US dollars, such as 2.50")
})
const tokens = Flags.integer("tokens", "N", "limit input and output to N tokens", 0)
const none = Flags.toggle("none", "remove all limits, including the configured one")

interface Wanted {
  readonly session: string | undefined
  readonly cost: number | undefined
  readonly tokens: number | undefined
  readonly none: boolean
  readonly json: boolean
}

const resolve = ({ session }: Wanted) =>
  Effect.flatMap(Folder.current, (directory) => SessionReference.resolve(session, directory))

/** Changes only the limits that are given. */
const set = Effect.fn("Command.budget.set")(function* (wanted: Wanted) {
  const sessions = yield* Sessions
  const { budget = {}, id } = yield* resolve(wanted)
  const next: Budget = {
    ...(wanted.none ? {} : budget),
    ...(wanted.cost === undefined ? {} : { cost: wanted.cost }),
    ...(wanted.tokens === undefined ? {} : { tokens: wanted.tokens })
  }
  yield* sessions.setBudget(id, next)
})

/** The configured limit, here or at the server. */
const configuredFor = (sessionID: SessionID) =>
  Effect.gen(function* () {
    const server = yield* Remote
    if (server === undefined) return yield* configuration
    const { limits } = yield* Effect.promise(() => import("../host/RemoteMachine.ts"))
    return yield* limits(server, sessionID)
  })

/** The session's own limit; without one and without a parent, the configured limit. */
const show = Effect.fn("Command.budget.show")(function* (wanted: Wanted) {
  const output = yield* Output
  const store = yield* SessionStore
  const session = yield* resolve(wanted)
  const configured = session.parentID === undefined ? (yield* configuredFor(session.id)).budget : undefined
  const limit: Spending["limit"] =
    session.budget !== undefined
      ? { budget: session.budget, from: "session" }
      : configured === undefined
        ? undefined
        : { budget: configured, from: "configuration" }
  const spending: Spending = {
    own: { cost: session.cost, tokens: session.tokens },
    total: yield* store.treeUsage(session.id),
    estimated: yield* store.treeEstimated(session.id),
    limit
  }
  yield* output.write(
    wanted.json ? `${jsonLine({ sessionID: session.id, ...spending }, output.terminal)}\n` : budgetText(spending)
  )
})

const run = (wanted: Wanted) =>
  Effect.gen(function* () {
    const amounts = wanted.cost !== undefined || wanted.tokens !== undefined
    if (wanted.none && amounts) {
      return yield* new UsageError({ message: "--none removes all limits: do not combine it with --cost or --tokens" })
    }
    // The configuration may contain the price that a cost limit needs.
    if (wanted.none || amounts) yield* withConfigured(set(wanted))
    yield* withReader(show(wanted))
  })

export const budget = verb({
  name: "budget",
  summary: "show what a session spent and may spend, or limit it",
  words: "[SESSION]",
  details: [
    "SESSION is an id or a title. Default: the session used last in this folder, or else the one used last anywhere. " +
      "The spending of the session's children and compactions counts. At its limit a session stops before the next " +
      "request and reports it; with a higher limit, daybook resume continues. A session without a limit of its own has the " +
      "configured one."
  ],
  given: { session: Flags.optional("SESSION"), cost, tokens, none, json: Flags.json },
  examples: [
    ["daybook budget fix", "shows what the session called fix spent"],
    ["daybook budget fix --cost 2.50", "limits it to 2.50 dollars in all, including its children"]
  ],
  overServer: true,
  run: (given) =>
    run({
      session: given.session,
      cost: given.cost,
      tokens: given.tokens,
      none: given.none,
      json: given.json
    })
})
