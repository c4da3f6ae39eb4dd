/** Tokens by the prefix of their issuer, and private keys. Spec: FM-191, FM-194. */
import { form, rule, type SecretForm } from "./SecretForm.ts"

/** A token cannot start within a word. */
const tokenForm = (starts: string, hint: string, ...sources: ReadonlyArray<string>): SecretForm =>
  form(starts, `(?<![A-Za-z0-9-])(?:${hint})`, "", rule("token", `(?<![A-Za-z0-9_-])(?:${sources.join("|")})`))

const hexadecimal = [..."0123456789abcdef"]

/** Tokens by their issuer's prefix. A line break may cut them. */
export const tokenForms: ReadonlyArray<SecretForm> = [
  // Keys of model providers, also masked ones.
  form(
    "sk- rk- pk- gsk xai",
    "(?<![A-Za-z0-9-])(?:[srp]k|gsk|xai)-",
    "",
    rule("token", String.raw`(?<![A-Za-z0-9_-])(?:sk-(?!ssh-|ecdsa-)|(?:rk|pk|gsk|xai)-)[\w*.-]{6,}`),
    rule("token", "(?<=_)sk-[A-Za-z0-9-]{20,}")
  ),
  tokenForm("key", "key-", String.raw`key-(?=[\w*.-]{0,64}[\d*])[\w*.-]{6,}`),
  tokenForm(
    "gsk hf_ hf- r8_ r8- npm fw_ fw- ppl tvl csk nva fig jin voy tog glc gls snt lin ntn",
    "(?:gsk|hf|r8|npm|fw|pplx|tvly|csk|nvapi|figd|jina|voyage|together|glc|glsa|sntryu?s?|lin_api|ntn)[_-]",
    String.raw`(?:gsk|hf|r8|npm|fw|pplx|tvly|csk|nvapi|figd|jina|voyage|together|glc|glsa|sntrys|sntryu|lin_api|ntn)[_-][A-Za-z0-9_-]{20,}`
  ),
  // Clouds.
  tokenForm(
    "aki asi abi acc aro aid aiz ya2",
    "AKIA|ASIA|ABIA|ACCA|AROA|AIDA|AIza|ya29",
    String.raw`(?:AKIA|ASIA|ABIA|ACCA|AROA|AIDA)[A-Z0-9]{16,}`,
    String.raw`AIza[\w-]{20,}`,
    String.raw`ya29\.[\w-]{20,}`
  ),
  tokenForm(
    "goc 1// dop dor doo dap hvs hvb hvr",
    "GOCSPX-|1//0|do[opr]_v1_|dapi[a-f0-9]|hv[sbr]\\.",
    String.raw`GOCSPX-[\w-]{20,}`,
    String.raw`1\/\/0[\w-]{20,}`,
    String.raw`do[opr]_v1_[a-f0-9]{32,}`,
    String.raw`dapi[a-f0-9]{32}`,
    String.raw`hv[sbr]\.[\w-]{20,}`
  ),
  tokenForm(
    "pul sbp sb_ dp.",
    "pul-|sbp_|sb_secret_|dp\\.(?:pt|st|ct|sa)\\.",
    String.raw`pul-[a-f0-9]{40}`,
    String.raw`sb(?:p_[a-f0-9]{40}|_secret_[\w-]{20,})`,
    String.raw`dp\.(?:pt|st|ct|sa)\.[\w.-]{40,}`
  ),
  form(
    ".at",
    "\\.atlasv1\\.",
    "",
    rule("token", String.raw`(?<=(?<![A-Za-z0-9_-])(?<lead>[A-Za-z0-9]{14}))\.atlasv1\.[\w-]{40,}`)
  ),
  // Code hosts and registries.
  form(
    "gho ghp ghr ghs ghu git",
    "gh[oprsu][-_]|github_pat_",
    "",
    rule("token", String.raw`(?<![A-Za-z0-9_-])(?:gh[oprsu]_[A-Za-z0-9]{20,}|github_pat_\w{20,})`),
    rule("token", "(?<=_)gh[oprsu][-_][A-Za-z0-9-]{20,}")
  ),
  tokenForm(
    "glp gld glr glc glf gls gla glo gli",
    "gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent|oas|imt)-",
    String.raw`gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent|oas|imt)-[\w.-]{16,}`
  ),
  // Packages, messages, mail and payments.
  tokenForm(
    "pyp rub ata xox xap sg.",
    "pypi-AgE|rubygems_|ATATT3|xox[abeoprs]-|xapp-|SG\\.",
    String.raw`pypi-AgE[\w-]{20,}`,
    String.raw`rubygems_[a-f0-9]{40,}`,
    String.raw`ATATT3[\w=-]{20,}`,
    String.raw`xox[abeoprs]-[\w-]{10,}`,
    String.raw`xapp-\d-[\w-]{10,}`,
    String.raw`SG\.[\w-]{16,64}\.[\w-]{16,}`
  ),
  form(":aa", ":AA", "", rule("token", String.raw`(?<=(?<![A-Za-z0-9_-])(?<lead>\d{8,10})):AA[\w-]{32,}`)),
  tokenForm(
    hexadecimal.map((digit) => `sk${digit} ac${digit}`).join(" "),
    "(?:SK|AC)[a-f0-9]{2}",
    "(?:SK|AC)[a-f0-9]{32}"
  ),
  tokenForm("sk_ rk_", "[rs]k_(?:live|test)_", "[rs]k_(?:live|test)_[A-Za-z0-9]{10,}"),
  form("sk_", "(?<=_)sk_", "", rule("token", "(?<=_)sk_[A-Za-z0-9-]{20,}")),
  tokenForm(
    "whs shp sq0 nra age eyj",
    "whsec_|shp(?:at|ca|pa|ss)_|sq0|NRAK-|AGE-SECRET-KEY-1|eyJ",
    String.raw`whsec_[A-Za-z0-9+/=]{20,}`,
    String.raw`shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}`,
    String.raw`sq0(?:atp|csp|idp)-[\w-]{20,}`,
    String.raw`NRAK-[A-Z0-9]{20,}`,
    String.raw`AGE-SECRET-KEY-1[0-9A-Z]{50,}`,
    // JSON Web Tokens.
    String.raw`eyJ[\w-]{6,}\.[\w-]{6,}\.[\w-]*`
  )
]

/** A block from its first line to its last; a block without an end ends where its text can no longer be base64. */
const keyForm = form(
  "beg",
  "(?<=-----)BEGIN ",
  "",
  rule(
    "private key",
    String.raw`(?<=(?<lead>-----))BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:[A-Za-z0-9+/=\s:,.()]|-(?!----))*(?:-----END [A-Z0-9 ]{0,60}-----)?`
  )
)

/** The private lines of a key file of PuTTY. */
const puttyForm = form(
  "pri",
  "Private-Lines:[ \\t]\\d",
  "",
  rule(
    "private key",
    String.raw`Private-Lines:[ \t]\d{1,4}[ \t]*\r?\n([A-Za-z0-9+/=]+(?:\r?\n[A-Za-z0-9+/=]+(?![^\r\n]))*)`
  )
)

/** Lines of a vault of Ansible, also within YAML or a difference. */
const vaultForm = form(
  "$an",
  "\\$ANSIBLE_VAULT;",
  "",
  rule(
    "vault",
    String.raw`\$ANSIBLE_VAULT;[^\r\n]{1,200}\r?\n[-+>|]?[ \t]*([0-9a-f]{4,}(?![^\s])(?:[ \t]*\r?\n[-+>|]?[ \t]*[0-9a-f]{4,}(?![^\s]))*)`
  )
)

export const keyForms: ReadonlyArray<SecretForm> = [keyForm, puttyForm, vaultForm]
