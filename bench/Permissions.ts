/**
 * Measures a permission decision about a command line of the tool `bash`: parsing the line and applying 60 rules. It uses
 * lines of one command and of many, and the longest line that is parsed. Loading the grammar is measured separately.
 */
import type { Rule } from "../packages/core/src/domain/Rule.ts"
import { type Grammar, readCommandLine } from "../packages/core/src/permission/CommandLine.ts"
import { lineVerdict } from "../packages/core/src/permission/CommandRules.ts"
import { median } from "./Figures.ts"

const rules: ReadonlyArray<Rule> = [
  { permission: "*", resource: "*", verdict: "ask" },
  ...Array.from({ length: 50 }, (_, index): Rule => ({
    permission: "bash",
    resource: `git sub${index} *`,
    verdict: "allow"
  })),
  ...["git diff *", "git log *", "npm test *", "cat *", "grep *"].map((resource): Rule => ({
    permission: "bash",
    resource,
    verdict: "allow"
  })),
  ...["rm *", "sudo *", "*curl*| sh*", "git push *"].map((resource): Rule => ({
    permission: "bash",
    resource,
    verdict: "deny"
  }))
]

const one = "git diff --stat HEAD~1 -- src/index.ts"
const many =
  'cd packages && for f in a b c; do if grep -q x "$f"; then cat "$f" | sed -n \'1,5p\'; fi; done; ' +
  "git log --oneline -5 | grep fix && npm test -- --run 2>&1 | tail -20; sh -c 'git diff x && cat y' > out.txt"
const longest = `git diff ${"x; cat y | grep z && git log a; ".repeat(110)}`

/** Milliseconds of CPU time per decision: the mean over some decisions, the median over the rounds. */
const decision = (grammar: Grammar, line: string, count: number, rounds: number): number => {
  const round = () => {
    const before = process.cpuUsage()
    for (let i = 0; i < count; i++) {
      lineVerdict({ grammar, permission: "bash", rules, approvals: [] }, readCommandLine(grammar, line))
    }
    const { system, user } = process.cpuUsage(before)
    return (system + user) / 1000 / count
  }
  round()
  return median(Array.from({ length: rounds }, round))
}

/** Times in milliseconds. */
export interface Result {
  readonly loading: number
  readonly one: number
  readonly many: number
  readonly longest: number
}

export const measure = async (rounds: number): Promise<Result> => {
  const started = performance.now()
  const grammar = await import("unbash")
  const loading = performance.now() - started
  return {
    loading,
    one: decision(grammar, one, 500, rounds),
    many: decision(grammar, many, 200, rounds),
    longest: decision(grammar, longest, 5, rounds)
  }
}
