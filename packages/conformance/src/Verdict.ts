/** Tests laws one after the other, and says which hold. */
import type { Law } from "./Laws.ts"
import type { Target } from "./Target.ts"

/** Whether a law holds. */
export interface Verdict {
  readonly law: Law
  /** How the server differs from the clause. */
  readonly problem: string | undefined
}

/** Tests each law. */
export const verify = async (laws: ReadonlyArray<Law>, target: Target): Promise<ReadonlyArray<Verdict>> => {
  const verdicts: Array<Verdict> = []
  for (const law of laws) {
    const problem = await law.test(target).then(
      () => undefined,
      (error: unknown) => (error instanceof Error ? error.message : String(error))
    )
    verdicts.push({ law, problem })
  }
  return verdicts
}

/** One line for each law, and how many hold. */
export const report = (verdicts: ReadonlyArray<Verdict>): string => {
  const lines = verdicts.map(({ law, problem }) =>
    problem === undefined
      ? `ok      ${law.clause}: ${law.says}`
      : `not ok  ${law.clause}: ${law.says}\n        ${problem}`
  )
  const holding = verdicts.filter(({ problem }) => problem === undefined).length
  return `${[...lines, `${holding} of ${verdicts.length} hold`].join("\n")}\n`
}
