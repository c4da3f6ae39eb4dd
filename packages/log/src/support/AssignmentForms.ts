/**
 * Secrets by their place: values that are assigned to the name of a secret, in code, files of settings and environments, and
 * passwords in the arguments of commands. Spec: FM-191, FM-600, FM-601.
 */
import { continuedValue } from "./OpenQuote.ts"
import { blank, form, rule, type SecretForm, type SecretRule } from "./SecretForm.ts"

const quote = "[\"'`]"
const assigned = `${quote}?\\]?${blank}{0,8}(?:=>|:=|[:=])${blank}{0,8}`
/** A value in quotes, which may contain the others and escaped ones. */
const withinOf = (quotes: string) =>
  `(${quotes})(?!\\s|\\)[\\s;,.+])((?:[^"'\`\\\\\\r\\n]|\\\\.|''|(?!\\1)${quote}){1,1024})(?=\\1)`
const within = withinOf(quote)
const password = "pass(?:word|wd|phrase)"
const secretName =
  "secret|token|api[_-]?key|access[_-]?key|private[_-]?key|secret[_-]?key|signing[_-]?key|account[_-]?key|credentials?|" +
  "client[_-]?secret|connection[_-]?string"

const secretOption = "(?:token|secret|api-?key|(?:access|auth|client|secret)-(?:key|secret|token))"

/** Names of variables in capital letters. */
const variable =
  "(?:PASS(?:WORD|WD|PHRASE)|SECRET|TOKEN|(?:API|ACCESS|PRIVATE|SECRET|SIGNING|ENCRYPTION|MASTER|AUTH)_?KEY|CREDENTIALS?|" +
  "SSHPASS|(?<=[A-Z0-9]_)(?:PASS|PWD|AUTH))(?:_BASE)?"
const variableHint = `${variable}(?:["']?\\]?[ \\t]{0,8}[:=]|["']?\\\\|["'],)`
/** The beginning of a line up to a name: indentation, and what may precede an assignment. */
const lineStartWith = (last: string) =>
  `(?<=^(?:[\\w./@-]{1,200}[:-]\\d{1,7}[:-]|[ \\t]*\\d{1,7}[:\\t ]|[-+>|])?[ \\t]*(?:(?:export|set|declare -x|ENV|ARG|-|\\+) )?["']?[\\w.-]{0,128}${last})`
const lineStart = lineStartWith("")
/** Words up to the end of the line. */
const words = "(?:[ \\t]{1,8}[A-Za-z0-9]{1,64}){1,32}(?=[ \\t]*\\r?$)"
const rest = "(?=[ \\t]*(?:#[^\\r\\n]*)?\\r?$)"

/** A value that continues on the next lines. */
const continued = (name: string, accepts: (secret: string) => boolean, flags = ""): SecretRule =>
  rule("assignment", `${name}${assigned}\\$?${continuedValue}`, {
    accepts: (secret) => !/^(?:\$[({]|\{\{)/.test(secret) && accepts(secret),
    flags,
    value: "quoted"
  })

const passwordRules: ReadonlyArray<SecretRule> = [
  rule("assignment", `${password}${assigned}${within}`, {
    accepts: (secret) => secret.length >= 3 && isPassword(secret) && !isReference(secret),
    flags: "i",
    value: "quoted"
  }),
  // A line of a file of settings.
  rule(
    "assignment",
    `${lineStart}${password}["']?(?:[ \\t]?=[ \\t]?|:[ \\t]{1,8})([^\\s"'\`{}[\\]|>&*!%$<(#][^\\s]{2,})${rest}`,
    { accepts: isSetting, flags: "i", value: "bare" }
  ),
  rule("assignment", `(?=passphrase)${lineStart}passphrase["']?[:=][ \\t]{0,8}([A-Za-z0-9-]{1,64}${words})`, {
    accepts: (secret) => secret.split(/\s+/).length >= 3,
    flags: "i",
    value: "bare"
  }),
  // A line within a text in quotes, and a text in quotes.
  rule(
    "assignment",
    `(?<=[:,[({][ \\t]?["'])${password}:[ \\t]{1,8}([^\\s"'\`{}[\\]|>&*!%$<(#][^\\s"'\`\\\\]{2,})(?=["'\`]|${rest})`,
    {
      accepts: (secret) => isSetting(secret) && isLikely(secret),
      flags: "i",
      separator: ":",
      value: "bare"
    }
  ),
  // An assignment without spaces, as in a connection string or an option.
  rule(
    "assignment",
    `${password}=([^\\s"'\`,;&<>(){}[\\]\\\\$*/.|](?:[^\\s"'\`,;&<>)}\\]\\\\|]|[)}\\]](?=\\w)){3,})(?=[\\s"'\`,;&<>)}\\]\\\\|]|$)`,
    { accepts: (secret) => isPassword(secret) && !isCode(secret), flags: "i", separator: "=", value: "bare" }
  ),
  rule(
    "assignment",
    `(?<=--)${password}${blank}{1,8}([^\\s"'\`,;&<>(){}[\\]\\\\$*|-][^\\s"'\`,;&<>(){}[\\]\\\\|]{3,})`,
    { accepts: isPassword, flags: "i", separator: "none" }
  ),
  rule("assignment", `${password}[ \\t]${withinOf("[\"']")}`, {
    accepts: (secret) => isPassword(secret) && !isReference(secret),
    flags: "i",
    separator: "none"
  }),
  // An element or an attribute of XML.
  rule("assignment", `${password}>([^<>\\s]{3,256})(?=</)`, {
    accepts: isPassword,
    flags: "i",
    separator: "none"
  }),
  continued(password, isPassword, "i"),
  rule("assignment", `${password}["'][ \\t]value=(["'])((?:(?!\\1)[^\\r\\n]){3,256})(?=\\1)`, {
    flags: "i",
    separator: "none"
  })
]

const secretRules: ReadonlyArray<SecretRule> = [
  continued(`(?:${secretName})(?:_base)?`, isMixed, "i"),
  rule("assignment", `(?:${secretName})(?:_base)?${assigned}${within}`, {
    accepts: isQuotedSecret,
    flags: "i",
    value: "quoted"
  }),
  rule(
    "assignment",
    `(?:${lineStartWith("[a-z0-9][_-]")}secret["']?:[ \\t]{1,8}|${lineStart}secret=)([^\\s"'\`{}[\\]|>&*!%$<(#][^\\s]{5,})${rest}`,
    { accepts: isSetting, flags: "i", value: "bare" }
  ),
  rule(
    "assignment",
    `(?:${password}|${secretName})(?:_base)?${assigned}${quote}?([^\\s"'\`,;&<>(){}[\\]\\\\$](?:[^\\s"'\`,;&<>\\\\|)}\\]{]|[)}\\]](?=\\w)){7,})`,
    { accepts: (secret) => isMixed(secret) && !isReference(secret) && !/^[A-Za-z_][\w.]*\(/.test(secret), flags: "i" }
  ),
  rule("assignment", `(?<=--)${secretOption}[= \\t]([^\\s"'\`,;&<>(){}[\\]\\\\$*|-][^\\s"'\`<>(){}\\\\|]{5,})`, {
    accepts: (secret) => hasDigit(secret) && isPassword(secret)
  }),
  rule("assignment", `aws_secret_access_key[ \\t]{1,8}([\\w+/=]{16,})`, { flags: "i", separator: "none" })
]

const variableRules: ReadonlyArray<SecretRule> = [
  continued(`(?<![a-z])${variable}`, isValue),
  // Nothing is expanded within these quotes, except by templates.
  rule("assignment", `(?<![a-z])${variable}["']?\\]?[ \\t]{0,8}[:=][ \\t]{0,8}\\$?${withinOf("'")}`, {
    accepts: (secret) => !/^(?:\$\{|\{\{)/.test(secret) && (/^\$\w/.test(secret) || isValue(secret)),
    value: "quoted"
  }),
  rule("assignment", `(?<![a-z])${variable}["']?\\]?[ \\t]{0,8}[:=][ \\t]{0,8}${withinOf('"')}`, {
    accepts: isValue,
    value: "quoted"
  }),
  // The quotes are around the whole assignment.
  rule("assignment", `(?<=(["'])[A-Z0-9_]{0,64})${variable}=((?:(?!\\1)[^\\r\\n]){1,1024})(?=\\1)`, {
    accepts: isValue,
    separator: "="
  }),
  rule("assignment", `(?<![a-z])${lineStart}${variable}=([^\\s"'\`]\\S*(?:${words})?)`, {
    accepts: isValue,
    separator: "=",
    value: "bare"
  }),
  rule("assignment", `(?<![a-z])${variable}=([^\\s"'\`\\\\]+)`, { accepts: isValue, separator: "=", value: "bare" }),
  rule(
    "assignment",
    `(?<![a-z])${lineStart}${variable}["']?:[ \\t]{0,8}([^\\s"'\`{}[\\]|>&*!%<#:=]\\S*(?:${words})?)${rest}`,
    { accepts: (secret) => isValue(secret) && isSetting(secret), separator: ":", value: "bare" }
  ),
  // Two arguments.
  rule("assignment", `(?<![a-z])${variable}["'],[ \\t]{0,8}${within}`, {
    accepts: (secret) => isValue(secret) && isLikely(secret),
    separator: "none"
  })
]

export const assignmentForms: ReadonlyArray<SecretForm> = [
  form("pas sec tok api acc pri sig enc mas aut cre pwd ssh", variableHint, "", ...variableRules),
  form(
    "pas",
    `pass(?:word|wd|phrase)(?:${quote}?\\]?${blank}{0,8}[:=]|["'\`\\\\>]|[ \\t]["']|(?<=--pass(?:word|wd|phrase))[ \\t])`,
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
    `(?<=[a-z0-9]_|;[ \\t]{0,2})(?:pass|pwd)(?:word)?(?:["']?\\]?${blank}{0,8}[:=]|\\\\)`,
    "i",
    rule("assignment", `(?<=[a-z0-9]_)(?:pass|pwd)${assigned}${within}`, {
      accepts: (secret) => isPassword(secret) && !isReference(secret),
      flags: "i",
      value: "quoted"
    }),
    // A connection string.
    rule("assignment", `(?<=;[ \\t]{0,2})(?:password|pwd)=([^;"'\\r\\n]{1,128})(?=;|["']|[ \\t]*\\r?$)`, {
      accepts: (secret) => isPassword(secret) && !isReference(secret),
      flags: "i",
      separator: "=",
      value: "bare"
    }),
    rule(
      "assignment",
      `${lineStartWith("[a-z0-9]_")}(?:pass|pwd):[ \\t]{1,8}([^\\s"'\`{}[\\]|>&*!%$<(#][^\\s]{2,})${rest}`,
      {
        accepts: (secret) => isSetting(secret) && !/^\d+$/.test(secret),
        flags: "i",
        separator: ":",
        value: "bare"
      }
    ),
    rule(
      "assignment",
      `(?<=[a-z0-9]_)(?:pass|pwd)=([^\\s"'\`,;&<>(){}[\\]\\\\$*/.|][^\\s"'\`,;&<>(){}[\\]\\\\|]{3,})(?=[\\s"'\`,;&<>)}\\]\\\\|]|$)`,
      { accepts: isPassword, flags: "i", separator: "=", value: "bare" }
    )
  ),
  // A login in a file of settings of Docker.
  form(
    "aut",
    `auth["'\\\\]`,
    "",
    rule("assignment", `(?<=["'])auth["'][ \\t]?:[ \\t]?["']([A-Za-z0-9+/]{8,1024}={0,2})(?=["'])`, {
      accepts: isMixed
    })
  ),
  // A line of .pgpass.
  form(
    ":54 :*:",
    ":(?:54\\d\\d|\\*):",
    "",
    rule(
      "assignment",
      `(?<=^[\\w.*-]{1,255}):(?:54\\d\\d|\\*):[\\w*.-]{1,64}:[\\w*.-]{1,64}:((?:[^\\s\\\\:]|\\\\.){1,256})(?=[ \\t]*\\r?$)`
    )
  ),
  form(
    "req mas",
    "(?:requirepass|masterauth)[ \\t]",
    "",
    rule(
      "assignment",
      `(?<=^[ \\t]{0,8}|config set |CONFIG SET )(?:requirepass|masterauth)[ \\t]{1,8}["']?([^\\s"']{3,256})(?=["']?[ \\t]*\\r?$)`
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

/**
 * Names whose value is on the same line or on the next: the environment of a container, a file of netrc. See
 * `SecretRegion.ts` of the shells, which keeps such lines together.
 */
export const pairForms: ReadonlyArray<SecretForm> = [
  form(
    "nam",
    `name["']?:[ \\t]{1,8}["']?[A-Z0-9_]{0,64}${variable}|name["']?\\\\`,
    "",
    rule(
      "assignment",
      `name["']?:[ \\t]{0,8}["']?[A-Z0-9_]{0,64}${variable}["']?,?[ \\t]*(?:\\r?\\n)?[ \\t]*["']?value["']?:[ \\t]{0,8}(?:["'](?=[^"'\\r\\n]*["']))?((?<=")[^"\\r\\n]+|(?<=')[^'\\r\\n]+|(?<!["'])[^\\s"'{}$][^\\r\\n]*)`,
      { accepts: (secret) => isValue(secret) && !secret.startsWith("$(") }
    )
  ),
  form(
    "log",
    "login[ \\t]{1,8}\\S{1,256}[ \\t]*\\r?$",
    "",
    rule("assignment", `(?<=^[ \\t]*)login[ \\t]{1,8}\\S{1,256}[ \\t]*\\r?\\n[ \\t]*password[ \\t]{1,8}(\\S+)`)
  )
]

/** Commands that are given a password in their arguments. */
export const commandForms: ReadonlyArray<SecretForm> = [
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
  command("zip unz", "(?:un)?zip", "-P[ \\t]?"),
  command("mon", "mongo\\w{0,8}", "-p[ \\t]?"),
  command("twi", "twine", "-p[ \\t]"),
  command("rcl", "rclone", "(?:obscure|pass|password)[ \\t=]"),
  command("rab", "rabbitmqctl", "(?:add_user|change_password)[ \\t]\\S{1,64}[ \\t]"),
  command("sql", "sqlcmd", "-P[ \\t]?"),
  command("sql", "sqlplus", "[\\w.]{1,64}/", "([^\\s\"'@]{1,128})(?=@)"),
  command("mys mar", "(?:mysql|mariadb-)admin", "password[ \\t]"),
  command("set", "setx", `[A-Z0-9_]{0,64}${variable}[ \\t]`),
  command("cur", "curl", "(?:-b|--cookie)[ =]?[\"']?[\\w.-]{1,64}=", "([^\\s\"'`;]{4,1024})"),
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
    "-pass(?:(?:in|out)?[ \\t](?:pass:|[\"'])|word[ \\t])",
    "",
    rule("assignment", `(?<=[ \\t])-password[ \\t]${option}`, { accepts: isPassword }),
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
  form(
    "-st -ke -sr -de",
    "-(?:src|dest)?(?:store|key)pass[ \\t]",
    "",
    rule("assignment", `(?<=[ \\t])-(?:src|dest)?(?:store|key)pass[ \\t]${option}`, { accepts: isPassword })
  ),
  form("ide", "identified[ \\t]", "i", rule("assignment", `identified[ \\t]by[ \\t]${within}`, { flags: "i" }))
]

/** Has something that words of prose have not. */
function isLikely(secret: string): boolean {
  return /[\d#$%&*!@^~+]/.test(secret)
}

function hasDigit(secret: string): boolean {
  return /\d/.test(secret)
}

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
