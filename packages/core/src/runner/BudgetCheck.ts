/**
 * Checks a session's budget before each provider request. Usage of descendants counts, and limits of ancestors apply.
 * Spec: EX-B1..EX-B9.
 */
import { Effect, Schema } from "effect"
import { SessionID } from "@daybook/log/domain/Identifiers"
import type { Session } from "@daybook/log/domain/Message"
import { type Budget, ModelRef } from "@daybook/log/domain/Values"
import type { LogUnavailable } from "@daybook/log/log/EventLog"
import type { SessionStore } from "@daybook/log/store/SessionStore"
import type { StoreError } from "@daybook/log/store/StoreError"
import type { ModelInfo } from "../model/ModelResolver.ts"

/** The session and its children used up their budget; no request was sent to a provider (EX-B8). */
export class BudgetExceeded extends Schema.TaggedError<BudgetExceeded>("@daybook/core/BudgetExceeded")(
  "BudgetExceeded",
  {
    /** The session that has the budget: this one or an ancestor. */
    sessionID: SessionID,
    limit: Schema.Literal("cost", "tokens"),
    spent: Schema.Finite,
    allowed: Schema.Finite
  }
) {
  override get message() {
    const amount = (value: number) => (this.limit === "cost" ? `$${value.toFixed(4)}` : `${value} tokens`)
    return (
      `${this.sessionID} and its children spent ${amount(this.spent)} of their budget of ${amount(this.allowed)}; ` +
      "raise the budget to continue"
    )
  }
}

/** A cost budget applies and the model's price is unknown; no request was sent to a provider (EX-B6). */
export class PriceUnknown extends Schema.TaggedError<PriceUnknown>("@daybook/core/PriceUnknown")("PriceUnknown", {
  /** The session that has the budget: this one or an ancestor. */
  sessionID: SessionID,
  model: ModelRef
}) {
  override get message() {
    const model = `${this.model.providerID}/${this.model.id}`
    return (
      `${this.sessionID} has a budget in dollars, and the price of ${model} is not known: give it a budget in tokens ` +
      `instead, or name the price under "prices" in the configuration (0 for a model that costs nothing)`
    )
  }
}

const isUnlimited = ({ cost, tokens }: Budget): boolean => cost === undefined && tokens === undefined

/** Builds the check. `fallback` is the host's limit for root sessions without a budget. */
export const make = (store: SessionStore["Type"], fallback: Budget) =>
  Effect.fn("BudgetCheck.check")(function* (
    session: Session,
    { price, ref }: ModelInfo
  ): Effect.fn.Return<void, BudgetExceeded | PriceUnknown | StoreError | LogUnavailable> {
    const above = session.parentID === undefined ? [] : yield* store.ancestors(session.id)
    for (const { budget, id, parentID } of [session, ...above]) {
      const allowed = budget ?? (parentID === undefined ? fallback : {})
      if (isUnlimited(allowed)) continue
      if (allowed.cost !== undefined && price === undefined)
        return yield* new PriceUnknown({ sessionID: id, model: ref })
      const spent = yield* store.treeUsage(id)
      const tokens = spent.tokens.input + spent.tokens.output
      if (allowed.cost !== undefined && spent.cost >= allowed.cost) {
        return yield* new BudgetExceeded({ sessionID: id, limit: "cost", spent: spent.cost, allowed: allowed.cost })
      }
      if (allowed.tokens !== undefined && tokens >= allowed.tokens) {
        return yield* new BudgetExceeded({ sessionID: id, limit: "tokens", spent: tokens, allowed: allowed.tokens })
      }
    }
  })

export type CheckBudget = ReturnType<typeof make>
