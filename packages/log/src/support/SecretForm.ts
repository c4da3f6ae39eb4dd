/** What a form of secrets is: patterns with a common beginning. `SecretRules.ts` has all forms. Spec: FM-191, FM-197. */

/** What a secret was recognised by. */
export type SecretKind =
  | "token"
  | "private key"
  | "vault"
  | "URL credential"
  | "header"
  | "environment value"
  | "assignment"
  | "random text"
  | "file"

export interface SecretRule {
  readonly kind: SecretKind
  readonly pattern: RegExp
  /** Further conditions on the secret. */
  readonly accepts?: (secret: string) => boolean
  /** What must precede the value if the hint ends there; "none": anything else. A test that is cheaper than the rule. */
  readonly separator?: ":" | "=" | "none"
  /** Whether the value begins with a quote. */
  readonly value?: "quoted" | "bare"
}

/** Rules with a common beginning. */
export interface SecretForm {
  /** The first three characters of a match, in any case. */
  readonly starts: string
  /** A check that is faster than the rules and passes for every beginning of a match, also with escaped quotes. */
  readonly hint: RegExp
  readonly rules: ReadonlyArray<SecretRule>
}

/** A pattern, and what it finds. */
export const rule = (
  kind: SecretKind,
  source: string,
  { flags = "", ...conditions }: Omit<SecretRule, "kind" | "pattern"> & { readonly flags?: string } = {}
): SecretRule => ({ kind, pattern: new RegExp(source, `my${flags}`), ...conditions })

export const form = (starts: string, hint: string, flags: string, ...rules: ReadonlyArray<SecretRule>): SecretForm => ({
  starts,
  hint: new RegExp(hint, `my${flags}`),
  rules
})

/** White space within a line. */
export const blank = String.raw`[^\S\r\n]`
