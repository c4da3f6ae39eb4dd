import { assert, describe, it } from "@effect/vitest"
import { FastCheck as fc, Schema } from "effect"
import { WrittenRules } from "../../packages/core/src/agent/AgentDefinition.ts"
import { literal, matches, type Rule, type Verdict, verdictOf } from "../../packages/core/src/domain/Rule.ts"

const rulesOf = (written: unknown): ReadonlyArray<Rule> =>
  Schema.decodeUnknownSync(WrittenRules, { onExcessProperty: "error" })(written)

const verdict = fc.constantFrom<Verdict>("allow", "ask", "deny")
/** Few letters, so that patterns meet often. */
const pattern = fc.string({ unit: fc.constantFrom("a", "b", "*", "?"), minLength: 1, maxLength: 5 })
const entries = fc.uniqueArray(fc.tuple(pattern, verdict), { selector: ([key]) => key, minLength: 1, maxLength: 8 })

describe("maps", () => {
  it.prop("CF-13: the order of a map means nothing", [entries, fc.array(fc.nat(), { maxLength: 8 })], ([map, keys]) => {
    const shuffled = map.toSorted((a, b) => (keys[map.indexOf(a)] ?? 0) - (keys[map.indexOf(b)] ?? 0))
    const written = (pairs: typeof map) => rulesOf({ bash: Object.fromEntries(pairs), ...Object.fromEntries(pairs) })
    assert.deepStrictEqual(written(shuffled), written(map))
  })

  it.prop("CF-13: every rule of a map is there once", [entries], ([map]) => {
    const rules = rulesOf({ bash: Object.fromEntries(map) })
    assert.sameDeepMembers(
      [...rules],
      map.map(([resource, said]) => ({ permission: "bash", resource, verdict: said }))
    )
  })

  it.prop(
    "CF-13: a rule for exactly one resource decides it, whatever patterns are beside it",
    [entries, fc.string({ unit: fc.constantFrom("a", "b"), minLength: 1, maxLength: 5 }), verdict],
    ([map, resource, said]) => {
      const rules = rulesOf({ bash: { ...Object.fromEntries(map), [literal(resource)]: said } })
      assert.strictEqual(verdictOf(rules, "bash", resource), said)
    }
  )

  it.prop(
    "CF-13: what a pattern covers is not decided by a wider one",
    [entries, pattern, verdict],
    ([map, tail, said]) => {
      // With letters of its own, the narrow pattern lies within every pattern that covers its texts at all.
      const narrow = `zz${tail.replaceAll("?", "a")}`
      const wide = map.filter(([key]) => matches(key, `zz${"q".repeat(20)}`) && matches(key, "zz"))
      const rules = rulesOf({ bash: { ...Object.fromEntries(wide), [narrow]: said } })
      assert.strictEqual(verdictOf(rules, "bash", narrow.replaceAll("*", "b")), said)
    }
  )

  it.each([
    [{ bash: { "git *": "allow", "*": "ask" } }, "bash", "git status", "allow"],
    [{ bash: { "git *": "allow", "*": "ask", "git push *": "deny" } }, "bash", "git push origin", "deny"],
    [{ edit: { "config/*": "allow", "*.env": "deny" } }, "edit", "config/a.env", "deny"],
    [{ edit: "allow", "*": "deny" }, "edit", "x", "allow"],
    [{ edit: "allow", "*": "deny" }, "bash", "x", "deny"],
    [{ "*": { "secret*": "deny" }, read: "allow" }, "read", "secrets.txt", "deny"],
    [{ bash: { "??": "deny", "*": "allow" } }, "bash", "ab", "deny"],
    [{ bash: { "a\\*": "deny", "a*": "allow" } }, "bash", "a*", "deny"]
  ] as const)("CF-13: %j", (map, permission, resource, expected) => {
    assert.strictEqual(verdictOf(rulesOf(map), permission, resource), expected)
    const reversed = Object.fromEntries(Object.entries(map).toReversed())
    assert.deepStrictEqual(rulesOf(reversed), rulesOf(map))
  })
})

describe("lists", () => {
  it.prop(
    "CF-13: a list keeps its order",
    [fc.array(fc.tuple(pattern, pattern, verdict), { maxLength: 10 })],
    ([list]) => {
      const rules = list.map(([permission, resource, said]) => ({ permission, resource, verdict: said }))
      assert.deepStrictEqual([...rulesOf(rules)], rules)
    }
  )

  it("CF-13: a rule of a list without a resource is for all", () => {
    assert.deepStrictEqual(
      [...rulesOf([{ permission: "edit", verdict: "deny" }])],
      [{ permission: "edit", resource: "*", verdict: "deny" }]
    )
  })
})

it("CF-46, CF-13: more than 200 rules, empty patterns and other verdicts are refused in both forms", () => {
  const many = Object.fromEntries(Array.from({ length: 201 }, (_, index) => [`a${index}`, "ask"]))
  for (const bad of [
    many,
    { bash: many },
    { "": "ask" },
    { bash: { "": "ask" } },
    { bash: "yes" },
    { bash: ["ask"] },
    "ask"
  ]) {
    assert.throws(() => rulesOf(bad))
  }
  assert.throws(() => rulesOf(Object.keys(many).map((permission) => ({ permission, verdict: "ask" }))))
  assert.throws(() => rulesOf([{ permission: "a", verdict: "ask", resource: "" }]))
  assert.throws(() => rulesOf([{ permission: "a", verdict: "ask", resources: "x" }]))
})

it("CF-46, CF-13: patterns of more than 20,000 characters together are refused in both forms", () => {
  const long = Array.from({ length: 20 }, (_, index) => `${index}`.padEnd(1_001, "x"))
  assert.throws(() => rulesOf({ bash: Object.fromEntries(long.map((key) => [key, "deny"])) }), "20000 characters")
  assert.throws(() => rulesOf(long.map((resource) => ({ permission: "bash", resource, verdict: "deny" }))), "20000")
  assert.lengthOf(rulesOf({ bash: Object.fromEntries(long.slice(1).map((key) => [key, "deny"])) }), 19)
})

it.each([
  ["stars", (index: number) => "*a".repeat(40) + index],
  ["one long segment", (index: number) => `*${"a".repeat(90)}${index}*`],
  ["question marks", (index: number) => `*${"?a".repeat(45)}${index}*`]
])("PM-11: 200 rules of %s that all have to be compared are ordered", (_, pattern) => {
  const map = Object.fromEntries(Array.from({ length: 200 }, (__, index) => [pattern(index), "allow"]))
  assert.lengthOf(rulesOf({ bash: map }), 200)
})
