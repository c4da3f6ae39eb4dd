/**
 * How much of a model's window a request may fill, and what a compaction keeps and writes, from the model's facts and
 * the settings. Pure. What a request is estimated at: TokenEstimate.ts. Spec: CP-1 to CP-4 (specs/compaction.md).
 */
/** What a person configures of compaction. */
export interface CompactionSettings {
  /** Off: no compaction by itself, neither before a request nor after an overflow. */
  readonly enabled: boolean
  /** Tokens of the window that stay free for the answer. */
  readonly reserveTokens: number
  /** Tokens of recent conversation that a checkpoint keeps word for word. */
  readonly keepRecentTokens: number
  /** Whether old tool results may be left out before anything is summarized. */
  readonly prune: boolean
}

export const defaultSettings: CompactionSettings = {
  enabled: true,
  reserveTokens: 16_384,
  keepRecentTokens: 20_000,
  prune: true
}

/** Tokens that a summary may have. */
export const maxSummaryTokens = 4_096
/** Tokens of the prompt that opened the running work, which a checkpoint keeps word for word. */
const maxTaskTokens = 4_096

export interface WindowInput {
  /** The model's window; 0 when unknown. */
  readonly contextTokens: number
  /** The model's longest answer; 0 when unknown. */
  readonly outputTokens: number
  /** The longest answer that the request asks for, if it says so. */
  readonly requestedOutput?: number
}

/** All in tokens; without end where the model's window is unknown. */
export interface Limits {
  readonly window: number
  readonly reserve: number
  /** What a request may have at most: more is compacted. */
  readonly budget: number
  /** What pruning alone has to reach, so that the next turns do not need it again at once. */
  readonly pruneTarget: number
  readonly keepRecent: number
  readonly summary: number
  readonly task: number
}

/** A limit that is no amount is not known: 0. */
const amount = (value: number): number => (Number.isFinite(value) && value > 0 ? Math.floor(value) : 0)

/**
 * The limits of one model under these settings. The reserve is the greater of the configured one and the answer's
 * allowance. Where it would leave less than a quarter of the window, it is half of the window. An unknown window has
 * room for everything: nothing is compacted unless somebody asks for it.
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
    // At least one: a request for no tokens at all is refused by providers.
    summary: Math.max(1, Math.min(maxSummaryTokens, quarter, amount(model.outputTokens) || maxSummaryTokens))
  }
}

/** Strictly more than the budget (CM-2). */
export const exceeds = (tokens: number, limits: Pick<Limits, "budget">): boolean => tokens > limits.budget
