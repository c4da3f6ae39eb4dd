/**
 * Tells from a provider's error which content of a request it rejected: pictures, PDF documents, media of either kind, or
 * text, or earlier thinking. Pure. `ProviderError.ts` classifies everything else. Spec: MD-640, MD-641, MD-781.
 */

export interface RejectedContent {
  /** `unknown`: the provider gives no reason. */
  readonly kind: "image" | "pdf" | "media" | "text" | "thinking" | "unknown"
  /** `all`: the model takes no content of this kind. `some`: one part is invalid. `many`: the request has too many parts. */
  readonly extent: "all" | "some" | "many"
}

/** Statuses of invalid requests. */
const invalid: ReadonlySet<number> = new Set([400, 413, 415, 422])
const ambiguous: ReadonlySet<number> = new Set([403, 404, 500, 501])

const anyOf = (...words: ReadonlyArray<string>): string => `(?:${words.join("|")})`

const picture = anyOf("images?", "image_url", "input_image", "pictures?", "vision", "multi-?modal", "mmproj")
const document = anyOf("pdfs?", "documents?", "input_file", "file_data")
const medium = anyOf(
  "media",
  "attachments?",
  "files?",
  "modalit(?:y|ies)",
  String.raw`content(?:\[\])?\.type`,
  "content (?:part|type|block)s?"
)
const never = anyOf(
  "not (?:be )?(?:support|accept|allow|enabled|available|permitted|capable)",
  "unsupported",
  "(?:does|do|did|can)(?:n't| ?not) (?:support|accept|take|allow|handle|process|have|read|see)",
  "no endpoints found that support",
  "unknown variant",
  "unrecognized",
  "only (?:supported|allowed|available)",
  "missing data required for",
  "only (?:supports? )?text"
)
const bad = anyOf(
  "(?:could ?n[o']t|can ?n[o']t|unable to|failed to|error) (?:\\w+ )?(?:process|decod|load|read|pars|open|identif)",
  "invalid",
  "not valid",
  "malformed",
  "corrupt",
  "damaged",
  "broken",
  "password",
  "encrypted",
  "unreadable",
  "empty",
  "too (?:large|big|small)",
  "exceed",
  "truncated",
  "not match",
  "dimensions?"
)
const tooMany = anyOf(
  "too (?:many|much)",
  "at most",
  "more than",
  "up to",
  "maximum (?:number )?of",
  "exceed\\w* (?:the )?(?:maximum |max )?(?:number|count|limit of)"
)
const formats = anyOf(
  "unsupported (?:image )?format",
  "(?<!un)supported (?:image )?(?:formats|types)",
  "m(?:edia|ime)[ _]?type"
)
const policies = anyOf(
  "flagged",
  "usage polic",
  "content[ _]?(?:policy|filter|management|moderation|exists risk)",
  "moderation",
  "data_?inspection",
  "inappropriate",
  "responsible ?ai",
  "prohibited[ _]content",
  "safety (?:system|filter|polic)",
  "sensitive (?:content|words?)",
  "new_sensitive",
  "敏感|不安全"
)

/** Thinking of earlier answers that does not verify: another account, key or gateway than before, or a changed history. */
const thinking = anyOf(
  "thought[_ ]signature",
  "signature`? in `?thinking",
  "thinking`? blocks? .{0,60}(?:cannot be modified|must contain)",
  "invalid_encrypted_content",
  "encrypted content\\b.{0,400}(?:verified|decrypted)",
  String.raw`'rs_\w+'.{0,80}(?:not found|without its required)`,
  "without its required 'reasoning'",
  // Servers that do not take back the field that they send (Cerebras).
  String.raw`messages?\b.{0,40}\breasoning(?:_content|_details|_text)?\b.{0,80}(?:unsupported|not (?:permitted|supported|allowed))`
)

/** Whether both stand within this distance, in either order. */
const near = (a: string, b: string): RegExp => new RegExp(`\\b${a}\\b.{0,120}?${b}|${b}.{0,120}?\\b${a}\\b`, "is")

/** The first pattern that fits decides: a count or a fault of one part is named before what the model takes at all. */
const rules: ReadonlyArray<readonly [RegExp, RejectedContent]> = [
  [new RegExp(thinking, "is"), { kind: "thinking", extent: "all" }],
  [near(anyOf(picture, medium, "pages"), tooMany), { kind: "media", extent: "many" }],
  [near(document, bad), { kind: "pdf", extent: "some" }],
  [near(picture, formats), { kind: "image", extent: "some" }],
  [near(document, never), { kind: "pdf", extent: "all" }],
  [near(picture, never), { kind: "image", extent: "all" }],
  [/not an? (?:vision|multi-?modal) model|text[- ]only model/i, { kind: "image", extent: "all" }],
  [near(picture, bad), { kind: "image", extent: "some" }],
  [near("base64", anyOf(bad, "illegal")), { kind: "media", extent: "some" }],
  [near(medium, never), { kind: "media", extent: "all" }],
  // Only media make the content of a message a list.
  [/(?:must|should) be a (?:valid )?string|expected a string/i, { kind: "media", extent: "all" }],
  [near(anyOf("media", "attachments?", "mime ?type"), bad), { kind: "media", extent: "some" }],
  [new RegExp(policies, "i"), { kind: "text", extent: "some" }]
]

/** Invalid requests that no change of their content repairs: the account, the model, settings, tools, roles and ids. */
const elsewhere = new RegExp(
  anyOf(
    "credit",
    "billing",
    "quota",
    "balance",
    "budget",
    "api[ _-]?key",
    "unauthori[sz]ed",
    "permission",
    "organization",
    "location",
    "https port",
    "policy",
    "model.{0,60}(?:not (?:found|exist|supported)|does not exist)",
    "(?:unknown|valid|load(?:ing)?) (?:the )?model",
    "(?:unknown|unsupported|unrecognized|unexpected|invalid) (?:request )?(?:parameter|argument|field|name|value|beta)",
    "context length",
    "extra inputs are not permitted",
    "header",
    "cache_control",
    "instructions",
    "\\bstore\\b",
    "max_(?:completion_)?tokens",
    "temperature",
    "top_p",
    "thinking",
    "reasoning",
    "(?:support|tool)s? tools?\\b",
    "\\btools?\\b.{0,20}(?:choice|\\.|\\[|'|in the request)",
    "schema",
    "grammar",
    "tool_(?:call_id|use|result)",
    "function (?:call|response)",
    "\\broles?\\b",
    "prefill",
    "system message"
  ),
  "i"
)

/**
 * The content that a provider rejected; undefined if the failure is about something else. `text` is what its answer
 * says.
 */
export const rejectedContent = (status: number | undefined, text: string): RejectedContent | undefined => {
  if (status !== undefined && !invalid.has(status) && !ambiguous.has(status)) return undefined
  const words = text.slice(0, 4_000)
  const found = rules.find(([wording]) => wording.test(words))?.[1]
  if (found !== undefined) return found
  const isUnnamed = status !== undefined && invalid.has(status) && !elsewhere.test(words)
  return isUnnamed ? { kind: "unknown", extent: "some" } : undefined
}
