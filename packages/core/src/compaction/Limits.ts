/**
 * Computes how much of a model's window a request may fill, and what a compaction keeps and writes, from the model's
 * facts and the settings. Pure. TokenEstimate.ts estimates requests. Spec: CP-1..CP-4 in specs/context.md.
 */
export interface CompactionSettings {
  readonly enabled: boolean
  /** Tokens of the window reserved for the answer. */
  readonly reserveTokens: number
  /** Tokens of recent conversation that a checkpoint keeps verbatim. */
  readonly keepRecentTokens: number
  /** Whether old tool results may be pruned before anything is summarized. */
  readonly prune: boolean
}

export const defaultSettings: CompactionSettings = {
  enabled: true,
  reserveTokens: 16_384,
  keepRecentTokens: 20_000,
  prune: true
}

/** Maximum tokens of a summary. */
export const maxSummaryTokens = 4_096
/** Maximum tokens of the prompt that opened the running work, which a checkpoint keeps verbatim. */
const maxTaskTokens = 4_096

export interface WindowInput {
  /** The model's window in tokens; 0 when unknown. */
  readonly contextTokens: number
  /** The model's maximum output in tokens; 0 when unknown. */
  readonly outputTokens: number
  /** The maximum output that the request sets, if any. */
  readonly requestedOutput?: number
}

/** Limits in tokens; infinite if the model's window is unknown. */
export interface Limits {
  readonly window: number
  readonly reserve: number
  /** Maximum size of a request: a larger one is compacted. */
  readonly budget: number
  /** The size that pruning alone must reach, so that the next turns need no further pruning. */
  readonly pruneTarget: number
  readonly keepRecent: number
  readonly summary: number
  readonly task: number
}

/** An invalid limit is treated as unknown: 0. */
const amount = (value: number): number => (Number.isFinite(value) && value > 0 ? Math.floor(value) : 0)

/**
 * Computes the limits of one model. The reserve is the greater of the configured one and the answer's allowance. If
 * that would leave less than a quarter of the window, the reserve is half of the window. With an unknown window nothing
 * is compacted unless requested.
 */
export const limitsOf = (
  model: WindowInput,
  settings: Pick<CompactionSettings, "reserveTokens" | "keepRecentTokens">
): Limits => {
  const window = amount(model.contextTokens) || Infinity
  const wanted = Math.max(amount(settings.reserveTokens), amount(model.requestedOutput ?? model.outputTokens))
  const reserve = window - wanted < window / 4 ? Math.floor(window / 2) : wanted
  const budget = window - reserve
  const quarter = Math.floor(budget / 4)
  return {
    window,
    reserve,
    budget,
    pruneTarget: Math.floor((budget * 3) / 4),
    task: Math.min(maxTaskTokens, Math.floor(budget / 8)),
    keepRecent: Math.min(amount(settings.keepRecentTokens), quarter),
    // At least one: providers reject a request for zero tokens.
    summary: Math.max(1, Math.min(maxSummaryTokens, quarter, amount(model.outputTokens) || maxSummaryTokens))
  }
}

/** True above the budget, not at it (CM-2). */
export const exceeds = (tokens: number, limits: Pick<Limits, "budget">): boolean => tokens > limits.budget
