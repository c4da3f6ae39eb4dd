/**
 * Checks a session's budget before each provider request. Usage of descendants counts, and limits of ancestors apply.
 * Spec: EX-B1..EX-B9.
 */
import { Effect } from "effect"
import type { Session } from "@daybook/log/domain/Message"
import type { Budget } from "@daybook/log/domain/Values"
import type { LogUnavailable } from "@daybook/log/log/EventLog"
import type { SessionStore } from "@daybook/log/store/SessionStore"
import type { StoreError } from "@daybook/log/store/StoreError"
import { BudgetExceeded, PriceUnknown } from "../domain/RunFailure.ts"
import type { ModelInfo } from "../model/ModelResolver.ts"

export { BudgetExceeded, PriceUnknown } from "../domain/RunFailure.ts"

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
