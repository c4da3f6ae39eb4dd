/**
 * The forms of secrets, as patterns. `SecretScan.ts` finds the places where one may begin by three characters, and
 * tries the patterns only there. Every pattern stays in its line, except that of private keys, and takes linear time.
 * Spec: FM-190..FM-199, FM-600, FM-601, FM-191.
 */
import { blank, form, keyForm, rule, type SecretForm, type SecretRule, tokenForms } from "./TokenForms.ts"

// Secrets by their place: values that are assigned to the name of a secret, in code, files of settings and
// environments, and passwords in the arguments of commands.

const quote = "[\"'`]"
const assigned = `${quote}?\\]?${blank}{0,8}(?:=>|:=|[:=])${blank}{0,8}`
/** A value in quotes, which may contain the others and escaped ones. */
const withinOf = (quotes: string) => `(${quotes})(?!\\s)((?:[^"'\`\\\\\\r\\n]|\\\\.|''|(?!\\1)${quote}){1,1024})(?=\\1)`
const within = withinOf(quote)
const password = "pass(?:word|wd|phrase)"
const secretName =
  "secret|token|api[_-]?key|access[_-]?key|private[_-]?key|secret[_-]?key|signing[_-]?key|account[_-]?key|credentials?|" +
  "client[_-]?secret|connection[_-]?string"

const secretOption = "(?:token|secret|api-?key|(?:access|auth|client|secret)-(?:key|secret|token))"

/** Names of variables in capital letters. */
const variable =
  "(?:PASS(?:WORD|WD|PHRASE)|SECRET|TOKEN|(?:API|ACCESS|PRIVATE|SECRET|SIGNING|ENCRYPTION|MASTER|AUTH)_?KEY|CREDENTIALS?|" +
  "(?<=[A-Z0-9]_)(?:PASS|PWD|AUTH))(?:_BASE)?"
const variableHint = `${variable}["'\\\\]?\\]?[ \\t]{0,8}[:=]`
/** The beginning of a line up to a name: indentation, and what may precede an assignment. */
const lineStartWith = (last: string) =>
  `(?<=^(?:[\\w./@-]{1,200}[:-]\\d{1,7}[:-]|[ \\t]*\\d{1,7}[:\\t ]|[-+>|])?[ \\t]*(?:(?:export|set|declare -x|ENV|ARG|-|\\+) )?["']?[\\w.-]{0,128}${last})`
const lineStart = lineStartWith("")
/** Words up to the end of the line. */
const words = "(?:[ \\t]{1,8}[A-Za-z0-9]{1,64}){1,32}(?=[ \\t]*\\r?$)"
const rest = "(?=[ \\t]*(?:#[^\\r\\n]*)?\\r?$)"

const passwordRules: ReadonlyArray<SecretRule> = [
  rule("assignment", `${password}${assigned}${within}`, {
    accepts: (secret) => secret.length >= 3 && isPassword(secret) && !isReference(secret),
    flags: "i"
  }),
  // A line of a file of settings.
  rule(
    "assignment",
    `${lineStart}${password}["']?(?:[ \\t]?=[ \\t]?|:[ \\t]{1,8})([^\\s"'\`{}[\\]|>&*!%$<(#][^\\s]{2,})${rest}`,
    { accepts: isSetting, flags: "i" }
  ),
  rule("assignment", `${lineStart}passphrase["']?[:=][ \\t]{0,8}([A-Za-z0-9-]{1,64}${words})`, {
    accepts: (secret) => secret.split(/\s+/).length >= 3,
    flags: "i"
  }),
  // An assignment without spaces, as in a connection string or an option.
  rule(
    "assignment",
    `${password}=([^\\s"'\`,;&<>(){}[\\]\\\\$*/.|](?:[^\\s"'\`,;&<>)}\\]\\\\|]|[)}\\]](?=\\w)){3,})(?=[\\s"'\`,;&<>)}\\]\\\\|]|$)`,
    { accepts: (secret) => isPassword(secret) && !isCode(secret), flags: "i" }
  ),
  rule(
    "assignment",
    `(?<=--)${password}${blank}{1,8}([^\\s"'\`,;&<>(){}[\\]\\\\$*|-][^\\s"'\`,;&<>(){}[\\]\\\\|]{3,})`,
    {
      accepts: isPassword,
      flags: "i"
    }
  ),
  rule("assignment", `${password}[ \\t]${withinOf("[\"']")}`, {
    accepts: (secret) => isPassword(secret) && !isReference(secret),
    flags: "i"
  }),
  // An element or an attribute of XML.
  rule("assignment", `${password}>([^<>\\s]{3,256})(?=</)`, { accepts: isPassword, flags: "i" }),
  rule("assignment", `${password}["'][ \\t]value=(["'])((?:(?!\\1)[^\\r\\n]){3,256})(?=\\1)`, { flags: "i" })
]

const secretRules: ReadonlyArray<SecretRule> = [
  rule("assignment", `(?:${secretName})(?:_base)?${assigned}${within}`, { accepts: isQuotedSecret, flags: "i" }),
  rule(
    "assignment",
    `(?:${lineStartWith("[a-z0-9][_-]")}secret["']?:[ \\t]{1,8}|${lineStart}secret=)([^\\s"'\`{}[\\]|>&*!%$<(#][^\\s]{5,})${rest}`,
    {
      accepts: isSetting,
      flags: "i"
    }
  ),
  rule(
    "assignment",
    `(?:${password}|${secretName})(?:_base)?${assigned}${quote}?([^\\s"'\`,;&<>(){}[\\]\\\\$](?:[^\\s"'\`,;&<>\\\\|)}\\]{]|[)}\\]](?=\\w)){7,})`,
    { accepts: (secret) => isMixed(secret) && !isReference(secret) && !/^[A-Za-z_][\w.]*\(/.test(secret), flags: "i" }
  ),
  rule("assignment", `(?<=--)${secretOption}[= \\t]([^\\s"'\`,;&<>(){}[\\]\\\\$*|-][^\\s"'\`<>(){}\\\\|]{5,})`, {
    accepts: (secret) => hasDigit(secret) && isPassword(secret)
  }),
  rule("assignment", `aws_secret_access_key[ \\t]{1,8}([\\w+/=]{16,})`, { flags: "i" })
]

const variableRules: ReadonlyArray<SecretRule> = [
  // Nothing is expanded within these quotes, except by templates.
  rule("assignment", `(?<![a-z])${variable}["']?\\]?[ \\t]{0,8}[:=][ \\t]{0,8}\\$?${withinOf("'")}`, {
    accepts: (secret) => !/^(?:\$\{|\{\{)/.test(secret) && (/^\$\w/.test(secret) || isValue(secret))
  }),
  rule("assignment", `(?<![a-z])${variable}["']?\\]?[ \\t]{0,8}[:=][ \\t]{0,8}${withinOf('"')}`, { accepts: isValue }),
  // The quotes are around the whole assignment.
  rule("assignment", `(?<=(["'])[A-Z0-9_]{0,64})${variable}=((?:(?!\\1)[^\\r\\n]){1,1024})(?=\\1)`, {
    accepts: isValue
  }),
  rule("assignment", `(?<![a-z])${lineStart}${variable}=([^\\s"'\`]\\S*${words})`, { accepts: isValue }),
  rule("assignment", `(?<![a-z])${lineStart}${variable}=([^\\s"'\`]\\S*)`, { accepts: isValue }),
  rule("assignment", `(?<![a-z])${variable}=([^\\s"'\`\\\\]+)`, { accepts: isValue }),
  rule(
    "assignment",
    `(?<![a-z])${lineStart}${variable}["']?:[ \\t]{1,8}([^\\s"'\`{}[\\]|>&*!%<#]\\S*(?:${words})?)${rest}`,
    {
      accepts: (secret) => isValue(secret) && isSetting(secret)
    }
  )
]

const assignmentForms: ReadonlyArray<SecretForm> = [
  form("pas sec tok api acc pri sig enc mas aut cre pwd", variableHint, "", ...variableRules),
  form(
    "pas",
    `(?<=--)pass(?:word|wd|phrase)[ \\t]|pass(?:word|wd|phrase)(?:["'\`\\\\>]|[ \\t]["']|\\]?${blank}{0,8}[:=])`,
    "i",
    ...passwordRules
  ),
  form(
    "pas sec tok api acc pri sig cre con cli aut aws",
    `(?:${password}|${secretName})(?:_base)?(?:\\\\|${quote}?\\]?${blank}{0,8}[:=])|(?<=--)${secretOption}[= \\t]|aws_secret_access_key[ \\t]`,
    "i",
    ...secretRules
  ),
  form(
    "pas pwd",
    `(?<=[a-z0-9]_)(?:pass|pwd)[=\\\\]`,
    "i",
    rule(
      "assignment",
      `(?<=[a-z0-9]_)(?:pass|pwd)=([^\\s"'\`,;&<>(){}[\\]\\\\$*/.|][^\\s"'\`,;&<>(){}[\\]\\\\|]{3,})(?=[\\s"'\`,;&<>)}\\]\\\\|]|$)`,
      { accepts: isPassword, flags: "i" }
    )
  ),
  form(
    "key pat pwd pas aut cre",
    `(?<=[A-Z0-9]_)(?:KEY|PAT|PWD|PASS|AUTH|CREDENTIALS?)[=\\\\]`,
    "",
    rule(
      "assignment",
      `(?<=[A-Z0-9]_)(?<!PUBLIC_)(?:KEY|PAT|PWD|PASS|AUTH|CREDENTIALS?)=["']?([^\\s"'\`,;&<>(){}[\\]\\\\$]{8,})`,
      { accepts: isMixed }
    )
  ),
  form(
    "_au _pa",
    "_(?:auth(?:token)?|password)[=\\\\]",
    "i",
    rule("assignment", `(?<![A-Za-z0-9])_(?:auth(?:Token)?|password)=([^\\s"'$]{4,})`)
  ),
  form(
    "mne",
    `mnemonic["'\\\\]?[:=]`,
    "i",
    rule("assignment", `mnemonic["']?[:=][ \\t]{0,8}["']?([a-z]{2,16}(?:[ \\t][a-z]{2,16}){2,32})`, { flags: "i" })
  )
]

/** A value of an option: in quotes, or up to the next space. */
const optionOf = (least: number) =>
  `["']?((?<=")[^"\\r\\n]{${least},}|(?<=')[^'\\r\\n]{${least},}|(?<!["'])[^\\s"'\`$<>|;&(){}\\\\-][^\\s"'\`<>|;&()\\\\]{${least - 1},})`
const option = optionOf(1)
/** A user's name and its password. */
const login = `["']?[\\w.@%+-]{1,128}:((?<=["'][\\w.@%+-]{1,128}:)[^"'\\r\\n]{2,}|[^\\s"'\`]{2,})`
/** Options and arguments before the one that counts. */
const before = "[ \\t](?:[^\\r\\n|;&]{0,256}?[ \\t])?"
const command = (starts: string, name: string, options: string, value = option): SecretForm =>
  form(starts, `${name}[ \\t]`, "", rule("assignment", `\\b${name}${before}${options}${value}`, { accepts: isLogin }))

/** Commands that are given a password in their arguments. */
const commandForms: ReadonlyArray<SecretForm> = [
  form(
    // The first character is a space, or a tab: the table does not tell them from these.
    "@-u i-u --u --p",
    "[ \\t]-[uU]|--(?:proxy-)?user[ =]",
    "",
    rule("assignment", `(?:[ \\t]-u[ =]?|--(?:proxy-)?user[ =])${login}`, { accepts: isLogin }),
    rule("assignment", "[ \\t]-U[ =]?[\"']?[\\w.\\\\@-]{1,128}%([^\\s\"'`]+)")
  ),
  command("cur", "curl", "-[A-Za-z]{0,8}u[ =]?", login),
  command("htt", "https?", "(?:-a|--auth)[ =]", login),
  command("ssh", "sshpass", "-\\w?p[ \\t]?"),
  command("mys mar", "(?:mysql|mariadb)[\\w-]{0,16}", "-p"),
  command("red", "redis-cli", "(?:-a|--pass)[ \\t=]?"),
  command("lda", "ldap\\w{2,8}", "-w[ \\t]?"),
  command("zip", "zip", "-P[ \\t]?"),
  command("7z@ 7zi 7za 7zr", "7z[ar]?", "-p"),
  command("htp", "htpasswd", "-\\w{0,4}b\\w{0,4}[ \\t]\\S{1,256}[ \\t]\\S{1,256}[ \\t]"),
  form(
    "log",
    "login[ \\t]",
    "",
    // A line of netrc.
    rule("assignment", `\\blogin[ \\t]{1,8}\\S{1,256}[ \\t]{1,8}password[ \\t]{1,8}(\\S+)`),
    rule("assignment", `\\blogin${before}-p[ \\t=]?${option}`)
  ),
  form(
    "-pa",
    "-pass(?:in|out)?[ \\t](?:pass:|[\"'])",
    "",
    rule("assignment", `(?<=[ \\t])-pass(?:in|out)?[ \\t]["']?pass:([^\\s"'\`$]+)`)
  ),
  form(
    "ech pri",
    "(?:echo|printf)[ \\t]",
    "",
    rule(
      "assignment",
      `\\b(?:echo|printf)[ \\t]+(?:-\\w+[ \\t]+)?${optionOf(4)}(?=["']?[ \\t]*\\|[^\\r\\n|;]{0,64}(?:sudo[ \\t](?:[^\\r\\n|;]{0,64}[ \\t])?-\\w*S|--stdin|-stdin\\b|--with-token|\\bchpasswd))`
    )
  ),
  form("ide", "identified[ \\t]", "i", rule("assignment", `identified[ \\t]by[ \\t]${within}`, { flags: "i" }))
]

/** Letters and digits of at least five kinds: not a word, a number or a placeholder. */
function isMixed(secret: string): boolean {
  return /\d/.test(secret) && /[A-Za-z]/.test(secret) && new Set(secret).size >= 5
}

/** Not a value of code or a placeholder. */
function isPassword(secret: string): boolean {
  return !/^(?:pass(?:word|wd|phrase)?|pwd|secret|token|(?:api_?)?key|str(?:ing)?|text|any|unknown|bytes|bool(?:ean)?|number|int(?:eger)?|object|null(?:able)?|none|nil|true|false|undefined|optional|required|inherit|hidden|x+|\*+|\.+|<?redacted>?|<[^<>]*>|\[[^[\]]*\]|your[ _-].*)[,;]?$/i.test(
    secret
  )
}

/** The value of a variable, an expression of a shell, or a placeholder of a template. */
function isReference(secret: string): boolean {
  return /^(?:\$(?:[A-Z_][A-Z0-9_]*|[a-z_]+|\d|[@*#?]|\{[^{}]*\}|\{\{.*|\(.*)|\{\{.*|`.*|%[A-Za-z_]+%|<[^<>]*>)[,;)]?$/.test(
    secret
  )
}

/** A call, an index, or a property of a well-known object. */
function isCode(secret: string): boolean {
  return /^(?:[A-Za-z_]\w*(?:(?:\.\w+)+[([].*|[([](?:.*[)\]}({[])?[,;:)]*|(?:\.\w+)*\.\w*(?:pass\w*|secret|token|key)[,;)]?)$|(?:process|os|this|self|config|conf|cfg|req|request|opts|options|user|data|body|params|args|env|props|settings|form|values|input|state|secrets|ctx|event|payload)\.[\w.]+[,;)]?$|[a-z]+(?:Password|Passwd|Secret|Token|Key)[,;)]?$)/.test(
    secret
  )
}

/** The value of a variable that is not a reference to another one. */
function isValue(secret: string): boolean {
  return (
    !isReference(secret) &&
    !/^(?:<.*>?|your[ _-].*|\.+)$/i.test(secret) &&
    !/^(?:[A-Z0-9]+_)*(?:TOKEN|SECRET|PASSWORD|KEY|CREDENTIALS?)$/.test(secret)
  )
}

/** The value of a setting in a file. */
function isSetting(secret: string): boolean {
  return (
    isPassword(secret) &&
    !isReference(secret) &&
    !isCode(secret) &&
    !/^[A-Za-z_$]\w*(?:\.\w+)*[,;]$|^[A-Z]\w*[[<]|^=|^\/(?:[\w.-]+\/)/.test(secret)
  )
}

/** A value in quotes under a name that is not always a secret's. */
function isQuotedSecret(secret: string): boolean {
  if (!isPassword(secret) || isReference(secret) || secret.length < 6) return false
  return isMixed(secret) || /^[^\s.:/]+ [^\s.:/]+$|[#$%&*=!(]/.test(secret)
}

/** Not a group of users, as in `docker run -u 1000:1000`. */
function isLogin(secret: string): boolean {
  return !/^\d+$|^(?:root|wheel|staff|nogroup|users|docker|www-data|node|nobody|adm|daemon)$|^\$|^</.test(secret)
}

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
    "://",
    `://(?:[^\\s/?#"'<>]{0,770}@|[^\\s/?#@:"'<>]{0,256}:[^\\s"'<>]{1,512}@)`,
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
export const certainForms: ReadonlyArray<SecretForm> = [...tokenForms, keyForm]

/** All rules but random text. */
export const shapeForms: ReadonlyArray<SecretForm> = [
  ...certainForms,
  fileForm,
  ...headerForms,
  ...urlForms,
  ...assignmentForms,
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
