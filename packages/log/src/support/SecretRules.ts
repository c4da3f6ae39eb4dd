/**
 * The forms of secrets, as patterns. `SecretScan.ts` finds the places where one may begin by three characters, and tries the
 * patterns only there. Every pattern stays in its line, except that of private keys, and takes linear time.
 * Spec: FM-190..FM-199, FM-600, FM-601.
 */
import { assignmentForms, commandForms, pairForms } from "./AssignmentForms.ts"
import { blank, form, rule, type SecretForm, type SecretRule } from "./SecretForm.ts"
import { keyForms, tokenForms } from "./TokenForms.ts"

const scheme = "(?:Bearer|Basic|Token|Digest|ApiKey)"
const credential = String.raw`([^\s"'\`<>\\,;]{6,})`
const headerStart = `["'\`]?${blank}{0,8}[:=]${blank}{0,8}["'\`]?`
const header = (name: string): ReadonlyArray<SecretRule> => [
  rule("header", `\\b${name}${headerStart}(?:${scheme}${blank}{1,8})?${credential}`, {
    accepts: isHeaderSecret,
    flags: "i"
  })
]

const headerForms: ReadonlyArray<SecretForm> = [
  form(
    "bea bas",
    `(?:bearer|basic)(?:${blank}|\\\\)`,
    "i",
    rule("header", `\\b(?:Bearer|Basic)${blank}{1,8}([\\w.~+/=*-]{6,})`, { accepts: isLikelyCredential, flags: "i" })
  ),
  form(
    "aut",
    `(?:authorization|auth-token)["'\`\\\\]?${blank}{0,8}[:=\\\\]`,
    "i",
    ...header("authorization"),
    ...header("auth-token"),
    // After the name of the header and a scheme, a word is a credential.
    rule("header", `\\bauthorization${headerStart}${scheme}${blank}{1,8}([^\\s"'\`<>\\\\,;$\\[{(]{6,})`, { flags: "i" })
  ),
  form("api", `api-key["'\`\\\\]?${blank}{0,8}[:=\\\\]`, "i", ...header("api-key")),
  form("sec", `security-token["'\`\\\\]?${blank}{0,8}[:=\\\\]`, "i", ...header("security-token")),
  form("pri", `private-token["'\`\\\\]?${blank}{0,8}[:=\\\\]`, "i", ...header("private-token")),
  form(
    "coo",
    `cookie["'\\\\]?${blank}{0,8}[:\\\\]`,
    "i",
    rule("header", `\\bcookie["']?${blank}{0,8}:${blank}{0,8}["']?([\\w.-]{1,128}=[^\\r\\n"'<>\\\\]{4,})`, {
      flags: "i"
    })
  )
]

/** Schemes of services that are used with a password. */
const services =
  "amqps?|clickhouse|ftps?|imaps?|kafka|ldaps?|mariadb|mongodb|mqtts?|mssql|mysqlx?|nats|oracle|pop3s?|postgres(?:ql)?|" +
  "rediss?|sftp|smb|smtps?|sqlserver"

const queryNames =
  "access_token|refresh_token|id_token|token|api_?key|key|sig|signature|secret|client_secret|password|auth|" +
  "x-amz-signature|x-amz-security-token"

const urlForms: ReadonlyArray<SecretForm> = [
  form(
    ":// :\\/ :\\\\",
    `:\\\\{1,8}/|://(?:[^\\s/?#"'<>]{0,770}@|[^\\s/?#@:"'<>]{0,256}:[^\\s"'<>]{1,512}@)`,
    "",
    rule("URL credential", `(?<=\\b(?:${services})(?:\\+\\w{1,16})?)://[^\\s/@:"'<>]{0,256}:([^\\s"'<>]{1,512})(?=@)`, {
      accepts: (secret) => !/^\d{1,5}[/?#]/.test(secret)
    }),
    // A password may contain the character that ends it.
    rule("URL credential", `://[^\\s/?#@:"'<>]{0,256}:([^\\s/?#"'<>]{1,512})(?=@)`),
    rule("URL credential", `://([^\\s/?#@:"'<>]{16,512})(?=@)`)
  ),
  form(
    "acc ref id_ tok api key sig sec cli pas aut x-a",
    `(?<=[?&;])(?:${queryNames})[=\\\\]`,
    "i",
    rule("URL credential", `(?<=[?&;])(?:${queryNames})=([^\\s&;#"'<>\\\\]{6,})`, { accepts: hasDigit, flags: "i" })
  ),
  form(
    "sla",
    "slack\\.com(?:/|\\\\)",
    "",
    rule("URL credential", "(?<=\\bhooks\\.)slack\\.com/(?:services|workflows)/([A-Za-z0-9/_-]{16,})")
  ),
  form(
    "/we",
    "/webhooks(?:/|\\\\)",
    "",
    rule("URL credential", "(?<=\\bdiscord(?:app)?\\.com/api)/webhooks/\\d{1,24}/([\\w-]{16,})")
  )
]

/** Data within a text cannot be checked. */
const fileForm = form(
  "bas",
  "(?<=;)base64,",
  "",
  rule("file", String.raw`(?<=data:[\w.+/-]{1,100};)base64,([\w+/=-]{64,})`)
)

/** Characters of a run that may be random text. */
export const shortestRun = 24

/** Texts before a run that say what it is: a hash, or a public key. */
const announced = /(?:\bh1:|\bSHA\d{1,3}:|\bssh-(?:rsa|dss|ed25519)[ \t]|\becdsa-[\w-]{1,24}[ \t]|@openssh\.com[ \t])$/

/** Ids of Daybook and of providers, digests and public keys, which are random but not secret. */
const harmless =
  /^(?:(?:ses|msg|evt|prt|act|call|toolu|srvtoolu|fc|rs|ws|resp|req|run|chatcmpl|gen|cmpl)[_-]|sha(?:1|256|384|512)-|AAAA(?:B3NzaC1|C3NzaC1|E2VjZHNh|InNr|GnNr))/

/** Whether random text is known to be no secret. */
export const isHarmless = (text: string, start: number): boolean =>
  harmless.test(text.slice(start, start + 16)) || announced.test(text.slice(Math.max(0, start - 32), start))

/** Public blocks, whose text is random but not secret. */
export const publicBlock =
  /-----BEGIN (?![A-Z0-9 ]{0,40}PRIVATE KEY)[A-Z0-9 ]{1,60}-----(?:[A-Za-z0-9+/=\s:,.()]|\\[nr]|-(?!----))*/g

/** Rules that can mistake no ordinary text: their matches in a finished output are a fault. */
export const certainForms: ReadonlyArray<SecretForm> = [...tokenForms, ...keyForms]

/** Secrets whose lines are searched together. */
export const blockForms: ReadonlyArray<SecretForm> = [...keyForms, ...pairForms]

/** All rules but random text. */
export const shapeForms: ReadonlyArray<SecretForm> = [
  ...certainForms,
  fileForm,
  ...headerForms,
  ...urlForms,
  ...assignmentForms,
  ...pairForms,
  ...commandForms
]

function hasDigit(secret: string): boolean {
  return /\d/.test(secret)
}

/** Not an English word after "basic" or "bearer". */
function isLikelyCredential(secret: string): boolean {
  return /[\d*=+/~]/.test(secret) || /[a-z][A-Z]/.test(secret)
}

/** Not a word of prose or of code. */
function isHeaderSecret(secret: string): boolean {
  return /\d/.test(secret) || /^\w*[a-z][A-Z](?:[A-Z]|\w*[a-z][A-Z])\w*$/.test(secret)
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
