/** Renders a session's spending and its limit. Pure. Spec: CL-90, CL-91 in specs/cli.md. */
import type { Budget, Estimated, Usage } from "@daybook/log/domain/Values"
import { columns } from "./Plain.ts"

/** A session's spending: its own, and with its children. */
export interface Spending {
  readonly own: Usage
  readonly total: Usage
  /** The estimated part of the total: unfinished requests, and providers that report no usage. */
  readonly estimated: Estimated
  /** The valid limit and its source; undefined without a limit. */
  readonly limit: { readonly budget: Budget; readonly from: "session" | "configuration" } | undefined
}

const dollars = (value: number): string => `$${value.toFixed(4)}`
const whole = (value: number): string => String(value).replaceAll(/\B(?=(\d{3})+$)/g, ",")

/** Input plus output tokens, as budgets count them. */
export const tokensOf = ({ tokens }: Usage): number => tokens.input + tokens.output

/** A table of the spending, the limit, and the rest. */
export const budgetText = ({ estimated, limit, own, total }: Spending): string => {
  const row = (what: string, cost: string, tokens: string) => [what, cost.padStart(12), tokens.padStart(14)]
  const spent = (what: string, usage: Usage) => row(what, dollars(usage.cost), whole(tokensOf(usage)))
  const { cost, tokens } = limit?.budget ?? {}
  const left = (allowed: number | undefined, used: number, show: (value: number) => string) =>
    allowed === undefined ? "-" : show(Math.max(0, allowed - used))
  return columns([
    row("", "cost", "tokens"),
    spent("itself", own),
    spent("with children", total),
    ...(estimated.tokens === 0 ? [] : [row("  of it estimated", dollars(estimated.cost), whole(estimated.tokens))]),
    row(
      limit?.from === "configuration" ? "limit (configured)" : "limit",
      cost === undefined ? "none" : dollars(cost),
      tokens === undefined ? "none" : whole(tokens)
    ),
    row("left", left(cost, total.cost, dollars), left(tokens, tokensOf(total), whole))
  ])
}
