/**
 * Permission rules: ordered, the last one that matches decides; nothing matching means `ask`. Pure: who asks and what
 * is remembered is in `Permission.ts`. Spec: PM-1, PM-2, TO-15.
 */
import { Schema } from "effect"

/** What a matching rule says. */
export const Verdict = Schema.Literal("allow", "deny", "ask")
export type Verdict = typeof Verdict.Type

/**
 * One rule. `permission` is an action's name or a pattern of it (`read`, `edit`, `bash`, `external_directory`, `*`);
 * `resource` a pattern of what is acted on (a path relative to the Location, a command). `*` stands for any run of
 * characters, `?` for one, and a backslash before one of `*`, `?` and `\\` for that character itself.
 */
export const Rule = Schema.Struct({
  permission: Schema.NonEmptyString,
  resource: Schema.NonEmptyString,
  verdict: Verdict
})
export type Rule = typeof Rule.Type

/** Something a person allowed for good: a rule whose verdict is `allow`. */
export type Approval = Pick<Rule, "permission" | "resource">

/** A pattern's tokens: the characters that stand for themselves, and the two wildcards. */
const parse = (pattern: string): ReadonlyArray<string | { readonly wildcard: "one" | "any" }> =>
  [...pattern.matchAll(/\\([*?\\])|([*?])|([^])/g)].map(([, escaped, wildcard, character]) =>
    wildcard === undefined ? (escaped ?? character ?? "") : { wildcard: wildcard === "*" ? "any" : "one" }
  )

/** The pattern that matches exactly this text. */
export const literal = (text: string): string => text.replaceAll(/[*?\\]/g, "\\$&")

/**
 * Whether the whole of `text` matches `pattern`. Walks both once and goes back to the last `*` only, so a hostile
 * pattern costs at most the product of the two lengths.
 */
export const matches = (pattern: string, text: string): boolean => {
  const tokens = parse(pattern)
  let [at, from, star, mark] = [0, 0, -1, 0]
  while (from < text.length) {
    const token = tokens[at]
    if (typeof token === "object" && token.wildcard === "any") {
      star = at++
      mark = from
    } else if (token === text[from] || (typeof token === "object" && token.wildcard === "one")) {
      at++
      from++
    } else if (star >= 0) {
      at = star + 1
      from = ++mark
    } else {
      return false
    }
  }
  return tokens.slice(at).every((token) => typeof token === "object" && token.wildcard === "any")
}

/** The verdict of the last rule that matches; undefined when none does. */
export const verdictOf = (rules: ReadonlyArray<Rule>, permission: string, resource: string): Verdict | undefined =>
  rules.findLast((rule) => matches(rule.permission, permission) && matches(rule.resource, resource))?.verdict

/** Whether an approval covers the resource. */
export const approves = (approvals: ReadonlyArray<Approval>, permission: string, resource: string): boolean =>
  approvals.some((approval) => matches(approval.permission, permission) && matches(approval.resource, resource))

/** Whether the rules refuse a permission whatever the resource: its last rule denies `*`. Such tools are not offered. */
export const deniesAll = (rules: ReadonlyArray<Rule>, permission: string): boolean => {
  const last = rules.findLast((rule) => matches(rule.permission, permission))
  return last?.verdict === "deny" && last.resource === "*"
}
