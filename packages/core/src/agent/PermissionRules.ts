/**
 * Parses permission rules. A list keeps its order, and its last match decides. A map has no order: a pattern precedes
 * the patterns that it covers, and of two overlapping patterns the stricter comes last. Pure. Spec: CF-13, CF-46.
 */
import { ParseResult, Schema } from "effect"
import { expects, made, selected, shaped, someText } from "../definition/Fields.ts"
import { compile, covers as patternCovers } from "../domain/Pattern.ts"
import type { Rule, Verdict } from "../domain/Rule.ts"

const WrittenVerdict = Schema.Literal("allow", "deny", "ask").pipe(expects("allow, ask or deny"))

/** Limits: ordering a map compares all pairs of rules, in time linear in their characters. */
const maximumRules = 200
const maximumCharacters = 20_000

/** The limit that the rules exceed, if any. */
const tooMuch = (rules: ReadonlyArray<Pick<Rule, "permission" | "resource">>): string | undefined =>
  rules.length > maximumRules
    ? `expected at most ${maximumRules} rules`
    : rules.reduce((sum, rule) => sum + rule.permission.length + rule.resource.length, 0) > maximumCharacters
      ? `expected at most ${maximumCharacters} characters in all patterns together`
      : undefined

const Listed = Schema.Array(
  Schema.Struct({
    permission: someText,
    resource: Schema.optionalWith(someText, { default: () => "*" }),
    verdict: WrittenVerdict
  }).pipe(shaped("a map with permission, resource and verdict"))
).pipe(shaped("a list of rules"), Schema.filter(tooMuch))

const ByResource = Schema.Record({ key: Schema.String, value: WrittenVerdict })
const Mapped = Schema.Record({
  key: Schema.String,
  value: selected<Verdict | typeof ByResource.Type>((value) =>
    typeof value === "object" && value !== null
      ? ParseResult.decodeUnknown(ByResource)
      : ParseResult.decodeUnknown(WrittenVerdict)
  )
})

/** Whether `outer` matches everything that `inner` matches. Returns false if undecidable. */
export const covers = (outer: string, inner: string): boolean => patternCovers(compile(outer), compile(inner))

const ruleCovers = (outer: Rule, inner: Rule) =>
  covers(outer.permission, inner.permission) && covers(outer.resource, inner.resource)

const strictness: Readonly<Record<Verdict, number>> = { allow: 0, ask: 1, deny: 2 }

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)

/** Orders rules by their patterns, independent of input order. */
export const orderRules = (rules: ReadonlyArray<Rule>): ReadonlyArray<Rule> => {
  const waiting = rules.toSorted(
    (a, b) =>
      strictness[a.verdict] - strictness[b.verdict] ||
      compare(a.permission, b.permission) ||
      compare(a.resource, b.resource)
  )
  const above = new Map(
    waiting.map((rule) => [
      rule,
      new Set(waiting.filter((other) => other !== rule && ruleCovers(other, rule) && !ruleCovers(rule, other)))
    ])
  )
  const ordered: Array<Rule> = []
  while (waiting.length > 0) {
    const next = Math.max(
      waiting.findIndex((rule) => above.get(rule)?.size === 0),
      0
    )
    const [rule] = waiting.splice(next, 1)
    if (rule === undefined) break
    ordered.push(rule)
    for (const others of above.values()) others.delete(rule)
  }
  return ordered
}

const flat = (map: typeof Mapped.Type): ReadonlyArray<Rule> =>
  Object.entries(map).flatMap(([permission, value]): ReadonlyArray<Rule> =>
    typeof value === "string"
      ? [{ permission, resource: "*", verdict: value }]
      : Object.entries(value).map(([resource, verdict]) => ({ permission, resource, verdict }))
  )

const Ordered = Schema.transformOrFail(Mapped, made<ReadonlyArray<Rule>>(), {
  strict: true,
  decode: (map, _, ast) => {
    const rules = flat(map)
    const wrong =
      Object.hasOwn(map, "") || rules.some(({ resource }) => resource === "")
        ? "expected patterns that are not empty"
        : tooMuch(rules)
    return wrong === undefined
      ? ParseResult.succeed(orderRules(rules))
      : ParseResult.fail(new ParseResult.Type(ast, map, wrong))
  },
  encode: (_, __, ast) => ParseResult.fail(new ParseResult.Forbidden(ast, _, "rules are not written back"))
})

/** Rules as a list or a map. */
export const WrittenRules = selected<ReadonlyArray<Rule>>((value) =>
  Array.isArray(value) ? ParseResult.decodeUnknown(Listed) : ParseResult.decodeUnknown(Ordered)
)
