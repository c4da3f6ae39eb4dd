/** Tests laws, each for a limited time, and says which hold. */
import type { Law, Target } from "./Kit.ts"

export interface Verdict {
  readonly law: Law
  /** How the server differs from the clause. */
  readonly problem?: string
  /** Why the law was not tested. */
  readonly untested?: string
  readonly milliseconds: number
}

export interface Options {
  /** How long one law may take, in milliseconds. Default: 10 seconds; 25 seconds for one that waits for the server's own times. */
  readonly patience?: number
  /** How long all of them may take, in milliseconds. Default: two minutes. */
  readonly limit?: number
  readonly onVerdict?: (verdict: Verdict) => void
}

const messageOf = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error)
  return error.cause instanceof Error && error.cause.message !== ""
    ? `${error.message}: ${error.cause.message}`
    : error.message
}

/** Tests a law. A server that neither answers nor ends does not hold it up: its requests are aborted, and no longer waited for. */
const tested = async (law: Law, target: Target, time: number): Promise<Verdict> => {
  const began = Date.now()
  const untested = law.untestable?.(target)
  if (untested !== undefined) return { law, untested, milliseconds: 0 }
  const abort = new AbortController()
  let timer: ReturnType<typeof setTimeout> | undefined
  const over = new Promise<string>((resolve) => {
    timer = setTimeout(() => {
      resolve(`it was not tested to its end within ${Math.round(time / 100) / 10} seconds`)
      abort.abort()
    }, time)
  })
  const signal = target.signal === undefined ? abort.signal : AbortSignal.any([target.signal, abort.signal])
  const ran = law.test({ ...target, signal }).then(() => undefined, messageOf)
  const problem = await Promise.race([ran, over])
  clearTimeout(timer)
  // Connections that a law left open.
  abort.abort()
  return { law, milliseconds: Date.now() - began, ...(problem === undefined ? {} : { problem }) }
}

/** Tests each law. Those that wait for the server's own times run beside the others. */
export const verify = async (
  laws: ReadonlyArray<Law>,
  target: Target,
  { limit = 120_000, onVerdict = () => {}, patience }: Options = {}
): Promise<ReadonlyArray<Verdict>> => {
  const end = Date.now() + limit
  const verdictOf = async (law: Law): Promise<Verdict> => {
    const left = end - Date.now()
    const time = Math.min(left, patience ?? (law.slow === true ? 25_000 : 10_000))
    const verdict =
      left <= 0
        ? { law, problem: "it was not tested: the time for all laws is over", milliseconds: 0 }
        : await tested(law, target, time)
    onVerdict(verdict)
    return verdict
  }
  const isSlow = ({ slow }: Law): boolean => slow === true
  const waiting = Promise.all(laws.filter(isSlow).map(verdictOf))
  const found = new Map<Law, Verdict>()
  for (const law of laws) if (!isSlow(law)) found.set(law, await verdictOf(law))
  for (const verdict of await waiting) found.set(verdict.law, verdict)
  return laws.flatMap((law) => found.get(law) ?? [])
}

/** Whether no law is broken. */
export const holds = (verdicts: ReadonlyArray<Verdict>): boolean =>
  verdicts.every(({ problem }) => problem === undefined)

/** A verdict as a line, and another one for its problem. */
export const line = ({ law: { clause, says }, problem, untested }: Verdict): string => {
  if (untested !== undefined) return `-       ${clause}: ${says}\n        not tested: ${untested}`
  return problem === undefined ? `ok      ${clause}: ${says}` : `not ok  ${clause}: ${says}\n        ${problem}`
}

/** How many laws hold. */
export const summary = (verdicts: ReadonlyArray<Verdict>): string => {
  const broken = verdicts.filter(({ problem }) => problem !== undefined).length
  const untested = verdicts.filter((verdict) => verdict.untested !== undefined).length
  const holding = `${verdicts.length - broken - untested} of ${verdicts.length} hold`
  return untested === 0 ? holding : `${holding}, and ${untested} ${untested === 1 ? "was" : "were"} not tested`
}

/** One line for each law, and how many hold. */
export const report = (verdicts: ReadonlyArray<Verdict>): string =>
  `${[...verdicts.map(line), summary(verdicts)].join("\n")}\n`

export const json = ({ law: { clause, says }, milliseconds, problem, untested }: Verdict): object => ({
  clause,
  says,
  result: untested !== undefined ? "untested" : problem === undefined ? "ok" : "broken",
  ...(problem === undefined ? {} : { problem }),
  ...(untested === undefined ? {} : { problem: untested }),
  milliseconds
})
