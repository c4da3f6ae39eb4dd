/**
 * Permission rules: ordered, the last one that matches decides; nothing matching means `ask`. Pure: who asks and what
 * is remembered is in `Permission.ts`. Spec: PM-1, PM-2, TO-15.
 */
import { Schema } from "effect"
import { compile, test } from "./Pattern.ts"

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

/** What a rule or an approval is for. */
type Use = Pick<Rule, "permission" | "resource">

/** Something that a person allowed for good: a rule whose verdict is `allow`, for as long as its definition stays. */
export interface Approval extends Use {
  /** The fingerprint of what the permission ran when it was allowed; none where that cannot change (PM-40). */
  readonly definition?: string
}

/** The pattern that matches exactly this text. */
export const literal = (text: string): string => text.replaceAll(/[*?\\]/g, "\\$&")

/** Whether the whole of `text` matches `pattern`, in time linear in the text. */
export const matches = (pattern: string, text: string): boolean => test(compile(pattern), text)

/** Whether a rule or an approval is for this use of a resource. */
export const applies = (rule: Use, permission: string, resource: string): boolean =>
  matches(rule.permission, permission) && matches(rule.resource, resource)

/** The last rule that matches, which decides; undefined when none does. */
export const decidingRule = (rules: ReadonlyArray<Rule>, permission: string, resource: string): Rule | undefined =>
  rules.findLast((rule) => applies(rule, permission, resource))

/** The verdict of the last rule that matches; undefined when none does. */
export const verdictOf = (rules: ReadonlyArray<Rule>, permission: string, resource: string): Verdict | undefined =>
  decidingRule(rules, permission, resource)?.verdict

/** Whether the rules refuse a permission whatever the resource: its last rule denies `*`. Such tools are not offered. */
export const deniesAll = (rules: ReadonlyArray<Rule>, permission: string): boolean => {
  const last = rules.findLast((rule) => matches(rule.permission, permission))
  return last?.verdict === "deny" && last.resource === "*"
}
