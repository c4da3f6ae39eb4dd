/** `daybook budget`: shows or sets what a session may spend. Spec: CL-90, CL-91. */
import { Effect } from "effect"
import { Sessions } from "@daybook/core/session/Sessions"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import type { Estimated, Usage, Budget } from "@daybook/log/domain/Values"
import { SessionStore } from "@daybook/log/store/SessionStore"
import * as Flags from "../arguments/Flags.ts"
import * as SessionReference from "../arguments/SessionReference.ts"
import { type FieldValues, verb } from "../arguments/Verb.ts"
import { Remote } from "../host/Remote.ts"
import { configuration, withConfigured, withReader } from "../host/Runtime.ts"
import { columns } from "../render/Plain.ts"
import { thousands } from "../support/Amounts.ts"
import { UsageError } from "../support/Errors.ts"
import { Output, writeJson } from "../terminal/Output.ts"

/** A session's spending: its own, and with its children. */
interface Spending {
  readonly own: Usage
  readonly total: Usage
  /** The estimated part of the total: unfinished requests, and providers that report no usage. */
  readonly estimated: Estimated
  /** The valid limit and its source; undefined without a limit. */
  readonly limit: { readonly budget: Budget; readonly from: "session" | "configuration" } | undefined
}

const dollars = (value: number): string => `$${value.toFixed(4)}`

/** Input plus output tokens, as budgets count them. */
const tokensOf = ({ tokens }: Usage): number => tokens.input + tokens.output

/** A table of the spending, the limit, and the rest. */
export const budgetText = ({ estimated, limit, own, total }: Spending): string => {
  const row = (what: string, cost: string, tokens: string) => [what, cost.padStart(12), tokens.padStart(14)]
  const spent = (what: string, usage: Usage) => row(what, dollars(usage.cost), thousands(tokensOf(usage)))
  const { cost, tokens } = limit?.budget ?? {}
  const left = (allowed: number | undefined, used: number, show: (value: number) => string) =>
    allowed === undefined ? "-" : show(Math.max(0, allowed - used))
  return columns([
    row("", "cost", "tokens"),
    spent("itself", own),
    spent("with children", total),
    ...(estimated.tokens === 0 ? [] : [row("  of it estimated", dollars(estimated.cost), thousands(estimated.tokens))]),
    row(
      limit?.from === "configuration" ? "limit (configured)" : "limit",
      cost === undefined ? "none" : dollars(cost),
      tokens === undefined ? "none" : thousands(tokens)
    ),
    row("left", left(cost, total.cost, dollars), left(tokens, tokensOf(total), thousands))
  ])
}

/** The limits, which `prompt` takes too. */
export const limits = {
  cost: Flags.value("cost", "USD", "limit the cost of the session to this many US dollars", (given) => {
    const amount = /^\d+(?:\.\d+)?$/.test(given) ? Number(given) : Number.NaN
    return Number.isFinite(amount) ? Effect.succeed(amount) : Effect.fail("US dollars, such as 2.50")
  }),
  tokens: Flags.integer("tokens", "N", "limit input and output of the session to N tokens", 0)
}

/** Changes only the limits that are given. */
export const withLimits = (budget: Budget, { cost, tokens }: Pick<BudgetRequest, "cost" | "tokens">): Budget => ({
  ...budget,
  ...(cost === undefined ? {} : { cost }),
  ...(tokens === undefined ? {} : { tokens })
})

const given = {
  session: Flags.optional("SESSION"),
  ...limits,
  none: Flags.toggle("none", "remove all limits, including the configured one"),
  json: Flags.json
}

type BudgetRequest = FieldValues<typeof given>

const set = Effect.fn("Command.budget.set")(function* (wanted: BudgetRequest) {
  const sessions = yield* Sessions
  const { budget = {}, id } = yield* SessionReference.resolveHere(wanted.session)
  yield* sessions.setBudget(id, withLimits(wanted.none ? {} : budget, wanted))
})

const configuredFor = Effect.fnUntraced(function* (sessionID: SessionID) {
  const server = yield* Remote
  if (server === undefined) return yield* configuration
  const { limits } = yield* Effect.promise(() => import("../host/RemoteHost.ts"))
  return yield* limits(server, sessionID)
})

/** The session's own limit; without one and without a parent, the configured limit. */
const show = Effect.fn("Command.budget.show")(function* (wanted: BudgetRequest) {
  const store = yield* SessionStore
  const session = yield* SessionReference.resolveHere(wanted.session)
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
  yield* wanted.json ? writeJson({ sessionID: session.id, ...spending }) : (yield* Output).write(budgetText(spending))
})

const run = Effect.fnUntraced(function* (wanted: BudgetRequest) {
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
    `${SessionReference.lastUsed} ` +
      "The spending of the session's children and compactions counts. At its limit a session stops before the next " +
      "request and reports it; with a higher limit, daybook resume continues. A session without a limit of its own has the " +
      "configured one."
  ],
  given,
  examples: [
    ["daybook budget fix", "shows what the session called fix spent"],
    ["daybook budget fix --cost 2.50", "limits it to 2.50 dollars in all, including its children"]
  ],
  overServer: true,
  run
})
