/**
 * Permission rules as people write them. A list keeps its order, and its last match decides, as everywhere. A map has no
 * order: what a pattern covers comes before what lies within it, and of two that only overlap, the stricter is last.
 * Pure. Spec: CF-13.
 */
import { ParseResult, Schema } from "effect"
import { expects, made, selected, shaped, someText } from "../config/Fields.ts"
import { matches, type Rule, type Verdict } from "../permission/Rule.ts"

const WrittenVerdict = Schema.Literal("allow", "deny", "ask").pipe(expects("allow, ask or deny"))

/** Enough for anybody; ordering a map looks at all pairs. */
const maximumRules = 200

const Listed = Schema.Array(
  Schema.Struct({
    permission: someText,
    resource: Schema.optionalWith(someText, { default: () => "*" }),
    verdict: WrittenVerdict
  }).pipe(shaped("a map with permission, resource and verdict"))
).pipe(
  shaped("a list of rules"),
  Schema.filter((rules) => rules.length <= maximumRules, { message: () => `expected at most ${maximumRules} rules` })
)

const ByResource = Schema.Record({ key: Schema.String, value: WrittenVerdict })
const Mapped = Schema.Record({
  key: Schema.String,
  value: selected<Verdict | typeof ByResource.Type>((value) =>
    typeof value === "object" && value !== null
      ? ParseResult.decodeUnknown(ByResource)
      : ParseResult.decodeUnknown(WrittenVerdict)
  )
})

/** A text that stands for all that a pattern matches: with its wildcards long (`fill` over 0), or empty. */
const probe = (pattern: string, fill: number): string =>
  pattern.replaceAll(
    /\\([*?\\])|([*?])/g,
    (_, escaped: string | undefined, wildcard: string | undefined) =>
      escaped ?? (wildcard === "*" ? "\uE000".repeat(fill) : "\uE001")
  )

/** Whether whatever `inner` matches, `outer` matches. */
export const covers = (outer: string, inner: string): boolean =>
  matches(outer, probe(inner, outer.length + 1)) && matches(outer, probe(inner, 0))

const ruleCovers = (outer: Rule, inner: Rule) =>
  covers(outer.permission, inner.permission) && covers(outer.resource, inner.resource)

const strictness: Readonly<Record<Verdict, number>> = { allow: 0, ask: 1, deny: 2 }

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)

/** The rules in the order that their patterns ask for, whatever order they came in. */
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

const fromMap = (map: typeof Mapped.Type): ReadonlyArray<Rule> =>
  orderRules(
    Object.entries(map).flatMap(([permission, value]): ReadonlyArray<Rule> =>
      typeof value === "string"
        ? [{ permission, resource: "*", verdict: value }]
        : Object.entries(value).map(([resource, verdict]) => ({ permission, resource, verdict }))
    )
  )

const Ordered = Schema.transformOrFail(Mapped, made<ReadonlyArray<Rule>>(), {
  strict: true,
  decode: (map, _, ast) => {
    const size = Object.values(map).reduce<number>(
      (sum, value) => sum + (typeof value === "string" ? 1 : Object.keys(value).length),
      0
    )
    const names = Object.entries(map).flatMap(([key, value]) => [
      key,
      ...(typeof value === "string" ? [] : Object.keys(value))
    ])
    if (names.includes(""))
      return ParseResult.fail(new ParseResult.Type(ast, map, "expected patterns that are not empty"))
    return size > maximumRules
      ? ParseResult.fail(new ParseResult.Type(ast, map, `expected at most ${maximumRules} rules`))
      : ParseResult.succeed(fromMap(map))
  },
  encode: (_, __, ast) => ParseResult.fail(new ParseResult.Forbidden(ast, _, "rules are not written back"))
})

/** Rules in either form. */
export const WrittenRules = selected<ReadonlyArray<Rule>>((value) =>
  Array.isArray(value) ? ParseResult.decodeUnknown(Listed) : ParseResult.decodeUnknown(Ordered)
)
