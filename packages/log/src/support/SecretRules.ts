/**
 * The forms of secrets, as patterns. Every pattern is linear: a repeated class is bounded or ends at a character that
 * cannot start the pattern again. Applied by `Redaction.ts`. Spec: FM-190..FM-199.
 */

/** What a secret was recognised by. */
export type SecretKind =
  "token" | "private key" | "URL credential" | "header" | "environment value" | "assignment" | "random text" | "file"

/** A pattern whose match ends with the secret: the last group, or the whole match. */
export interface SecretRule {
  readonly kind: SecretKind
  readonly pattern: RegExp
  /** Further conditions on the secret. */
  readonly accepts?: (secret: string) => boolean
}

/** Tokens by their issuer's prefix. */
const tokens = [
  // Keys of model providers, also masked ones.
  String.raw`(?:sk|rk|pk|gsk|xai)-[\w*.-]{6,}`,
  String.raw`key-(?=[\w*.-]{0,64}[\d*])[\w*.-]{6,}`,
  String.raw`AIza[\w-]{20,}`,
  String.raw`(?:gsk|hf|r8|npm|fw|pplx|tvly|csk|nvapi|figd|jina|voyage|together|glc|glsa|sntrys|sntryu|lin_api|ntn)[_-][A-Za-z0-9_-]{20,}`,
  // Clouds.
  String.raw`(?:AKIA|ASIA|ABIA|ACCA|AROA|AIDA)[A-Z0-9]{16,}`,
  String.raw`ya29\.[\w-]{20,}`,
  String.raw`GOCSPX-[\w-]{20,}`,
  String.raw`1\/\/0[\w-]{20,}`,
  String.raw`do[opr]_v1_[a-f0-9]{32,}`,
  String.raw`dapi[a-f0-9]{32}`,
  String.raw`hv[sbr]\.[\w-]{20,}`,
  String.raw`[A-Za-z0-9]{14}\.atlasv1\.[\w-]{40,}`,
  String.raw`pul-[a-f0-9]{40}`,
  String.raw`sb(?:p_[a-f0-9]{40}|_secret_[\w-]{20,})`,
  String.raw`dp\.(?:pt|st|ct|sa)\.[\w.-]{40,}`,
  // Code hosts and registries.
  String.raw`gh[oprsu]_[A-Za-z0-9]{20,}`,
  String.raw`github_pat_\w{20,}`,
  String.raw`gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent|oas|imt)-[\w.-]{16,}`,
  String.raw`pypi-AgE[\w-]{20,}`,
  String.raw`rubygems_[a-f0-9]{40,}`,
  String.raw`ATATT3[\w=-]{20,}`,
  // Messages, mail and payments.
  String.raw`xox[abeoprs]-[\w-]{10,}`,
  String.raw`xapp-\d-[\w-]{10,}`,
  String.raw`\d{8,10}:AA[\w-]{32,}`,
  String.raw`SG\.[\w-]{16,64}\.[\w-]{16,}`,
  String.raw`(?:SK|AC)[a-f0-9]{32}`,
  String.raw`[rs]k_(?:live|test)_[A-Za-z0-9]{10,}`,
  String.raw`whsec_[A-Za-z0-9+/=]{20,}`,
  String.raw`shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}`,
  String.raw`sq0(?:atp|csp|idp)-[\w-]{20,}`,
  String.raw`NRAK-[A-Z0-9]{20,}`,
  String.raw`AGE-SECRET-KEY-1[0-9A-Z]{50,}`,
  // JSON Web Tokens.
  String.raw`eyJ[\w-]{6,}\.[\w-]{6,}\.[\w-]*`
]

/** Tokens by their form. A token cannot start within a word, so each start is tried once per word. */
export const tokenRule: SecretRule = {
  kind: "token",
  pattern: new RegExp(`(?<![A-Za-z0-9_-])(?:${tokens.join("|")})|(?<=_)(?:sk|gh[oprsu])[-_][A-Za-z0-9-]{20,}`, "g")
}

/** A block from its first line to its last; a block without an end ends where its text can no longer be base64. */
const pemRule: SecretRule = {
  kind: "private key",
  pattern:
    /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:[A-Za-z0-9+/=\s:,.()]|-(?!----))*(?:-----END [A-Z0-9 ]{0,60}-----)?/g
}

const scheme = "(?:Bearer|Basic|Token|Digest|ApiKey)"

const hasDigit = (secret: string): boolean => /\d/.test(secret)

const headerRules: ReadonlyArray<SecretRule> = [
  { kind: "header", pattern: /\b(?:Bearer|Basic)[^\S\r\n]{1,8}([\w.~+/=*-]{6,})/gi, accepts: isLikelyCredential },
  {
    kind: "header",
    pattern: new RegExp(
      `\\b(?:authorization|x-api-key|api-key|x-auth-token|x-goog-api-key|x-amz-security-token|private-token)` +
        `["'\`]?[^\\S\\r\\n]{0,8}[:=][^\\S\\r\\n]{0,8}["'\`]?(?:${scheme}[^\\S\\r\\n]{1,8})?([^\\s"'\`<>\\\\,;]{6,})`,
      "gi"
    ),
    accepts: hasDigit
  },
  {
    // After the name of the header and a scheme, a word is a credential.
    kind: "header",
    pattern: new RegExp(
      `\\bauthorization["'\`]?[^\\S\\r\\n]{0,8}[:=][^\\S\\r\\n]{0,8}["'\`]?${scheme}[^\\S\\r\\n]{1,8}([^\\s"'\`<>\\\\,;$\\[{(]{6,})`,
      "gi"
    )
  },
  {
    kind: "header",
    pattern: /\b(?:set-)?cookie["']?[^\S\r\n]{0,8}:[^\S\r\n]{0,8}["']?([\w.-]{1,128}=[^\r\n"'<>\\]{4,})/gi
  }
]

const urlRules: ReadonlyArray<SecretRule> = [
  { kind: "URL credential", pattern: /:\/\/[^\s/?#@:"'<>]{0,256}:([^\s/?#@"'<>]{1,512})(?=@)/g },
  { kind: "URL credential", pattern: /:\/\/([^\s/?#@:"'<>]{16,512})(?=@)/g },
  {
    kind: "URL credential",
    pattern:
      /[?&;](?:access_token|refresh_token|id_token|token|api_?key|key|sig|signature|secret|client_secret|password|auth|x-amz-signature|x-amz-security-token)=([^\s&#"'<>\\]{6,})/gi,
    accepts: hasDigit
  },
  { kind: "URL credential", pattern: /\bhooks\.slack\.com\/(?:services|workflows)\/([A-Za-z0-9/_-]{16,})/g },
  { kind: "URL credential", pattern: /\bdiscord(?:app)?\.com\/api\/webhooks\/\d{1,24}\/([\w-]{16,})/g }
]

const quoted = "[\"'`]"
const assigned = `${quoted}?\\]?[^\\S\\r\\n]{0,8}(?:=>|:=|[:=])[^\\S\\r\\n]{0,8}`
const secretWords =
  "secret|token|api[_-]?key|access[_-]?key|private[_-]?key|secret[_-]?key|signing[_-]?key|account[_-]?key|credentials?|client[_-]?secret|connection[_-]?string"

const assignmentRules: ReadonlyArray<SecretRule> = [
  {
    kind: "assignment",
    pattern: new RegExp(`pass(?:word|wd|phrase)${assigned}${quoted}([^\\s"'\`<>]{4,})(?=${quoted})`, "gi")
  },
  {
    kind: "assignment",
    pattern: new RegExp(
      `(?:pass(?:word|wd|phrase)|${secretWords})${assigned}${quoted}?([^\\s"'\`,;&<>(){}[\\]\\\\$]{8,})`,
      "gi"
    ),
    accepts: isMixed
  },
  {
    kind: "assignment",
    pattern: /[A-Z0-9]_(?:KEY|PAT|PWD|PASS|AUTH|CREDENTIALS?)=["']?([^\s"'`,;&<>(){}[\]\\$]{8,})/g,
    accepts: isMixed
  },
  {
    // An assignment without spaces, as in an environment, a connection string or an option.
    kind: "assignment",
    pattern:
      /(?:pass(?:word|wd|phrase)|[a-z0-9]_(?:pass|pwd))=([^\s"'`,;&<>(){}[\]\\$*/.|][^\s"'`,;&<>(){}[\]\\|]{3,512})(?=[\s"'`,;&<>)}\]\\|]|$)/gi,
    accepts: isPassword
  },
  {
    kind: "assignment",
    pattern: /--pass(?:word|wd|phrase)[^\S\r\n]{1,8}([^\s"'`,;&<>(){}[\]\\$*|-][^\s"'`,;&<>(){}[\]\\|]{3,})/gi,
    accepts: isPassword
  }
]

/** Random text: long runs that change between lower case, upper case and digits as no word does. */
export const randomRule: SecretRule = {
  kind: "random text",
  pattern: /(?<![\w+/=-])[\w+/=-]{24,}/g,
  accepts: isRandom
}

/** Data within a text cannot be checked. */
const fileRule: SecretRule = { kind: "file", pattern: /data:[\w.+/-]{1,100};base64,([\w+/=-]{64,})/g }

/** Rules that can mistake no ordinary text: their matches in a finished output are a fault. */
export const certainRules: ReadonlyArray<SecretRule> = [tokenRule, pemRule]

/** All rules but `randomRule`. */
export const shapeRules: ReadonlyArray<SecretRule> = [
  ...certainRules,
  fileRule,
  ...headerRules,
  ...urlRules,
  ...assignmentRules
]

/** Not an English word after "basic" or "bearer". */
function isLikelyCredential(secret: string): boolean {
  return /[\d*=+/~]/.test(secret) || /[a-z][A-Z]/.test(secret)
}

/** Letters and digits of at least five kinds: not a word, a number or a placeholder. */
function isMixed(secret: string): boolean {
  return /\d/.test(secret) && /[A-Za-z]/.test(secret) && new Set(secret).size >= 5
}

/** Not a value of code or a placeholder. */
function isPassword(secret: string): boolean {
  return !/^(?:pass(?:word|wd|phrase)?|pwd|string|none|null|nil|true|false|undefined|required|x+|<?redacted>?)$/i.test(
    secret
  )
}

/** Ids of Daybook and of providers, and digests, which are random but not secret. */
const harmless =
  /^(?:(?:ses|msg|evt|prt|act|call|toolu|srvtoolu|fc|rs|ws|resp|req|run|chatcmpl|gen|cmpl)[_-]|sha(?:1|256|384|512)-)/

function isRandom(secret: string): boolean {
  if (harmless.test(secret)) return false
  let changes = 0
  let before = 0
  let seen = 0
  for (let index = 0; index < secret.length; index++) {
    const code = secret.charCodeAt(index)
    const kind = code >= 97 ? 1 : code >= 65 && code !== 95 ? 2 : code >= 48 && code <= 57 ? 4 : 0
    if (kind === 0) continue
    if (before !== 0 && kind !== before) changes++
    before = kind
    seen |= kind
  }
  return seen === 7 && changes >= secret.length * 0.4
}

/** Whether a field or variable of this name holds a secret. */
export const isSecretName = (name: string): boolean =>
  name.length <= 128 &&
  /(?:^|[^a-z])(?:password|passwd|passphrase|secret|token|api_?key|access_?key|private_?key|secret_?key|signing_?key|account_?key|client_?secret|credentials?|authorization|cookie|connection_?string)$/.test(
    name
      .replaceAll(/([a-z0-9])([A-Z])/g, "$1_$2")
      .toLowerCase()
      .replaceAll("-", "_")
  )
