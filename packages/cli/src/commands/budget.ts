/** `daybook budget`: what a session spent, and what it may. Spec: CL-90, CL-91. */
import { Sessions, SessionStore, type Budget } from "@daybook/core"
import { Args, Command } from "@effect/cli"
import { Effect, Option } from "effect"
import { UsageError } from "../Errors.ts"
import * as Flags from "../Flags.ts"
import * as Folder from "../Folder.ts"
import { Output } from "../Output.ts"
import { budgetText, type Spending } from "../render/BudgetText.ts"
import { jsonLine } from "../render/Plain.ts"
import { configuration, withConfigured, withReader } from "../Runtime.ts"
import * as SessionReference from "../SessionReference.ts"
import type { Verb } from "../Verb.ts"

const cost = Flags.value("cost", "USD", "at most so many US dollars from now on", (given) => {
  const amount = /^\d+(?:\.\d+)?$/.test(given) ? Number(given) : Number.NaN
  return Number.isFinite(amount) ? Effect.succeed(amount) : Effect.fail("US dollars, such as 2.50")
})
const tokens = Flags.integer("tokens", "N", "at most N tokens, read and written, from now on", 0)
const none = Flags.toggle("none", "no limit from now on, not even the configured one")

interface Wanted {
  readonly session: string | undefined
  readonly cost: number | undefined
  readonly tokens: number | undefined
  readonly none: boolean
  readonly json: boolean
}

const resolve = ({ session }: Wanted) =>
  Effect.flatMap(Folder.current, (directory) => SessionReference.resolve(session, directory))

/** What is not named stays as it is. */
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

/** The session's own limit, or the configured one of a session that nobody started. */
const show = Effect.fn("Command.budget.show")(function* (wanted: Wanted) {
  const output = yield* Output
  const store = yield* SessionStore
  const session = yield* resolve(wanted)
  const configured = session.parentID === undefined ? (yield* configuration).budget : undefined
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
      return yield* new UsageError({ message: "--none takes the limits away: give it alone" })
    }
    // With the configuration: it may name the price that a limit of cost needs.
    if (wanted.none || amounts) yield* withConfigured(set(wanted))
    yield* withReader(show(wanted))
  })

export const budget = {
  name: "budget",
  summary: "show what a session spent and may spend, or limit it",
  words: "[SESSION]",
  details: [
    "SESSION is an id or a title; without it, the session used last in this folder, else the one used last of all. " +
      "What the session's children and its compactions spend counts. At its limit a session stops before the next " +
      "request, and says so; with a higher one, daybook resume goes on. A session without a limit of its own has the " +
      "configured one."
  ],
  flags: [cost, tokens, none, Flags.json],
  examples: [
    ["daybook budget fix", "what the session called fix spent"],
    ["daybook budget fix --cost 2.50", "two and a half dollars in all, its children included"]
  ],
  command: Command.make(
    "budget",
    {
      session: Args.optional(Args.text({ name: "SESSION" })),
      cost: cost.options,
      tokens: tokens.options,
      none: none.options,
      json: Flags.json.options
    },
    (given) =>
      run({
        session: Option.getOrUndefined(given.session),
        cost: Option.getOrUndefined(given.cost),
        tokens: Option.getOrUndefined(given.tokens),
        none: given.none,
        json: given.json
      })
  )
} satisfies Verb
