/** Permission rules: ordered, the last one that matches decides; nothing matching means `ask`. Spec: specs/tools.md. */
import { Schema } from "effect"

/** What a matching rule says. */
export const Verdict = Schema.Literal("allow", "deny", "ask")
export type Verdict = typeof Verdict.Type

/**
 * One rule. `permission` is an action's name or a pattern of it (`read`, `edit`, `bash`, `external_directory`, `*`);
 * `resource` a pattern of what is acted on (a path relative to the Location, a command). `*` stands for any run of
 * characters, `?` for one.
 */
export const Rule = Schema.Struct({
  permission: Schema.NonEmptyString,
  resource: Schema.NonEmptyString,
  verdict: Verdict
})
export type Rule = typeof Rule.Type
