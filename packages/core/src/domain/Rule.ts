/** Permission rules: the last match decides, no match means `ask`. Pure. Spec: PM-1, PM-2, TO-15. */
import { Schema } from "effect"
import { compile, test } from "./Pattern.ts"

export const Verdict = Schema.Literal("allow", "deny", "ask")
export type Verdict = typeof Verdict.Type

/**
 * One rule. `permission` is an action's name or a pattern (`read`, `edit`, `bash`, `external_directory`, `*`);
 * `resource` is a pattern of what it acts on (a path relative to the Location, a command). `*` matches any run of
 * characters, `?` one character; a backslash before `*`, `?` or `\\` matches that character itself.
 */
export const Rule = Schema.Struct({
  permission: Schema.NonEmptyString,
  resource: Schema.NonEmptyString,
  verdict: Verdict
})
export type Rule = typeof Rule.Type

/** A person's saved permission: a rule with the verdict `allow`, valid while its definition is unchanged. */
export const Approval = Schema.Struct({
  permission: Schema.String,
  resource: Schema.String,
  /** The fingerprint of what the permission ran when it was approved; absent if that cannot change (PM-40). */
  definition: Schema.optionalWith(Schema.String, { exact: true })
})
export type Approval = typeof Approval.Type

/** Escapes a text to a pattern that matches exactly this text. */
export const literal = (text: string): string => text.replaceAll(/[*?\\]/g, "\\$&")

/** Whether the whole of `text` matches `pattern`, in time linear in the text. */
export const matches = (pattern: string, text: string): boolean => test(compile(pattern), text)

/** Whether a rule or an approval applies to this permission and resource. */
export const applies = (rule: Pick<Rule, "permission" | "resource">, permission: string, resource: string): boolean =>
  matches(rule.permission, permission) && matches(rule.resource, resource)

/** The last matching rule, which decides; undefined if none matches. */
export const decidingRule = (rules: ReadonlyArray<Rule>, permission: string, resource: string): Rule | undefined =>
  rules.findLast((rule) => applies(rule, permission, resource))

/** The verdict of the last matching rule; undefined if none matches. */
export const verdictOf = (rules: ReadonlyArray<Rule>, permission: string, resource: string): Verdict | undefined =>
  decidingRule(rules, permission, resource)?.verdict

/** Whether the last rule for a permission denies it for `*`. Such tools are not offered to the model. */
export const deniesAll = (rules: ReadonlyArray<Rule>, permission: string): boolean => {
  const last = rules.findLast((rule) => matches(rule.permission, permission))
  return last?.verdict === "deny" && last.resource === "*"
}
