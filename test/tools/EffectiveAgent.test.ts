/** What rules leave to a child, as a pure function: never more than its own, nothing that is denied above. */
import { assert, it } from "@effect/vitest"
import { FastCheck as fc } from "effect"
import { effectiveAgent } from "../../packages/core/src/agent/Lineage.ts"
import type { Agent } from "../../packages/core/src/domain/Agent.ts"
import { deniesAll, type Rule, type Verdict, verdictOf } from "../../packages/core/src/domain/Rule.ts"
import { forAll } from "../support/Cases.ts"

const agent = (...permissions: ReadonlyArray<Rule>): Agent => ({ name: "a", permissions })
const rule = (verdict: Verdict, permission: string, resource = "*"): Rule => ({ permission, resource, verdict })

const strictness: Readonly<Record<Verdict, number>> = { allow: 0, ask: 1, deny: 2 }
const verdict = ({ permissions }: Agent, permission: string, resource: string): Verdict =>
  verdictOf(permissions, permission, resource) ?? "ask"

const patterns = ["*", "a*", "*b", "ab", "a?", "b*", "a*b", "?", "\\*", "ab*"]
const texts = ["a", "b", "ab", "abb", "ba", "aab", "*", "c"]
const rules = fc.array(
  fc.record({
    permission: fc.constantFrom("*", "read", "edit", "e*", "*t"),
    resource: fc.constantFrom(...patterns),
    verdict: fc.constantFrom<Verdict>("allow", "ask", "deny")
  }),
  { maxLength: 6 }
)
const family = fc.tuple(rules, fc.array(rules, { maxLength: 3 }))

it("TO-105: a child may never do more than its own rules say, nor anything that one above denies", () => {
  forAll([family], 120, ([own, above]) => {
    const child = agent(...own)
    const effective = effectiveAgent(
      child,
      above.map((list) => agent(...list))
    )
    for (const permission of ["read", "edit", "bash", "task"]) {
      for (const text of texts) {
        const found = verdict(effective, permission, text)
        assert.isAtLeast(strictness[found], strictness[verdict(child, permission, text)])
        if (above.some((list) => verdict(agent(...list), permission, text) === "deny")) {
          assert.strictEqual(found, "deny")
        }
      }
    }
  })
})

it("TO-124, TO-105: what nobody above denies is as the child's own rules have it, exceptions above included", () => {
  const orchestrator = agent(rule("deny", "*"), rule("allow", "read"), rule("ask", "bash", "git *"))
  const child = agent(rule("allow", "*"), rule("deny", "read", "secret*"), rule("ask", "bash"))
  const effective = effectiveAgent(child, [orchestrator])
  for (const [permission, resource, expected] of [
    ["read", "src/a.ts", "allow"],
    ["read", "secret.txt", "deny"],
    ["bash", "git status", "ask"],
    ["bash", "rm -rf .", "deny"],
    ["edit", "src/a.ts", "deny"]
  ] as const) {
    assert.strictEqual(verdict(effective, permission, resource), expected, `${permission} ${resource}`)
  }
})

it("TO-105: a tool that anybody in the line is denied altogether is not offered, whatever else is denied", () => {
  const child = agent(rule("allow", "*"), rule("deny", "edit"))
  const above = agent(rule("allow", "*"), rule("deny", "bash"), rule("deny", "edit", "secret*"))
  const { permissions } = effectiveAgent(child, [above])
  assert.isTrue(deniesAll(permissions, "edit"))
  assert.isTrue(deniesAll(permissions, "bash"))
  assert.isFalse(deniesAll(permissions, "read"))
})

it("TO-103: an agent at the deepest place has no `task`; one that nobody stands above is as it is", () => {
  const child = agent(rule("allow", "*"))
  assert.strictEqual(effectiveAgent(child, [], 3), child)
  assert.strictEqual(effectiveAgent(child, [agent(rule("allow", "*"))], 3), child)
  assert.isTrue(deniesAll(effectiveAgent(child, [child, child, child], 3).permissions, "task"))
  assert.isTrue(deniesAll(effectiveAgent(child, [], 0).permissions, "task"))
})

it("TO-124, TO-105: long lists stay bounded, and only stricter for it", () => {
  const many = Array.from({ length: 200 }, (_, index) => rule(index % 2 === 0 ? "deny" : "allow", `p${index}`))
  const lists = Array.from({ length: 8 }, (_, index) => agent(...many, rule("deny", `q${index}`)))
  const { permissions } = effectiveAgent(agent(...many), lists)
  assert.isBelow(permissions.length, 40_000)
  assert.strictEqual(verdictOf(permissions, "q7", "x"), "deny")
})
