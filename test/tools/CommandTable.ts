/** Tables of command lines and their verdicts under rules. */
import { assert, it } from "@effect/vitest"
import * as grammar from "unbash"
import type { Rule, Verdict } from "../../packages/core/src/domain/Rule.ts"
import { readCommandLine } from "../../packages/core/src/permission/CommandLine.ts"
import { lineVerdict } from "../../packages/core/src/permission/CommandRules.ts"

export type Written = Readonly<Record<string, Verdict>>

export const rulesOf = (written: Written): ReadonlyArray<Rule> =>
  Object.entries(written).map(([resource, verdict]) => ({ permission: "bash", resource, verdict }))

export const judge = (line: string, written: Written, approved: ReadonlyArray<string> = []): Verdict =>
  lineVerdict(
    {
      grammar,
      permission: "bash",
      rules: rulesOf(written),
      approvals: approved.map((resource) => ({ permission: "bash", resource }))
    },
    readCommandLine(grammar, line)
  )

/** The rules of a careful person. */
export const careful: Written = {
  "*": "ask",
  "git diff *": "allow",
  "git log *": "allow",
  "git status": "allow",
  "cat *": "allow",
  "grep *": "allow",
  "echo *": "allow",
  "find *": "allow",
  "sort *": "allow",
  "sed *": "allow",
  "awk *": "allow",
  "npm test": "allow",
  "npm run *": "allow",
  "rm *": "deny",
  "git push *": "deny"
}

export const table = (law: string, written: Written, rows: ReadonlyArray<readonly [string, Verdict]>) =>
  it.each(rows.map(([line, verdict]) => [law, line, verdict] as const))("%s: %j: %s", (_, line, verdict) => {
    assert.strictEqual(judge(line, written), verdict)
  })
