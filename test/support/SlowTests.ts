/** With `DAYBOOK_QUIET=1`, on a machine that does nothing else, fails a run in which a test takes too long. Spec: PA-24. */
import { relative } from "node:path"
import type { Reporter, TestModule } from "vitest/node"

const mostMillis = 2_000

interface Timed {
  readonly name: string
  readonly millis: number
}

/** A line for each test that takes too long, the slowest first; undefined if none does. */
export const slowText = (tests: ReadonlyArray<Timed>): string | undefined => {
  const slow = tests.filter(({ millis }) => millis > mostMillis).toSorted((a, b) => b.millis - a.millis)
  if (slow.length === 0) return undefined
  const lines = slow.map(({ millis, name }) => `  ${(millis / 1_000).toFixed(1)} s  ${name}`)
  return ["", `Tests of more than ${mostMillis / 1_000} seconds:`, ...lines, ""].join("\n")
}

const timed = (module: TestModule): ReadonlyArray<Timed> =>
  [...module.children.allTests()].map((test) => ({
    name: `${relative(process.cwd(), module.moduleId)}: ${test.fullName}`,
    millis: test.diagnostic()?.duration ?? 0
  }))

export class SlowTests implements Reporter {
  onTestRunEnd(modules: ReadonlyArray<TestModule>) {
    const text = slowText(modules.flatMap(timed))
    if (text === undefined) return
    console.error(text)
    process.exitCode = 1
  }
}
