/** What a session spent, request by request. Pure. Spec: IP-14 in specs/inspector.md. */
import type { Budget, Tokens } from "@daybook/log/domain/Values"

/** One provider request that ended. */
export interface Spent {
  readonly seq: number
  readonly at: number
  readonly input: number
  readonly output: number
  readonly cached: number
  readonly cost: number
  /** All until now. */
  readonly totalCost: number
  readonly totalTokens: number
  /** The rest of the budget at that time; undefined if there was no budget. */
  readonly costLeft: number | undefined
  readonly tokensLeft: number | undefined
}

export class Spending {
  readonly points: Array<Spent> = []
  budget: Budget = {}
  totalCost = 0
  totalTokens = 0

  /** Counts from here. */
  restart(): void {
    this.points.length = 0
    this.totalCost = 0
    this.totalTokens = 0
  }

  /** A request, a retry or a compaction was charged. */
  charge(
    { at, seq }: { readonly at: number; readonly seq: number },
    { cost = 0, tokens }: { readonly cost?: number | undefined; readonly tokens?: Tokens | undefined }
  ): void {
    if (tokens === undefined && cost === 0) return
    const [input, output] = [tokens?.input ?? 0, (tokens?.output ?? 0) + (tokens?.reasoning ?? 0)]
    this.totalCost += cost
    this.totalTokens += input + output
    const left = (most: number | undefined, spent: number) =>
      most === undefined ? undefined : Math.max(0, most - spent)
    this.points.push({
      seq,
      at,
      input,
      output,
      cached: tokens?.cache.read ?? 0,
      cost,
      totalCost: this.totalCost,
      totalTokens: this.totalTokens,
      costLeft: left(this.budget.cost, this.totalCost),
      tokensLeft: left(this.budget.tokens, this.totalTokens)
    })
  }
}
