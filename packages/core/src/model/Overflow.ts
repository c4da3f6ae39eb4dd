/**
 * Recognises from a provider's words that a request exceeded the model's context window, and reads the window from them.
 * `ProviderError.ts` finds the words. Pure. Spec: MD-31, MD-680..MD-683 in specs/models.md.
 */

/** What a provider said of a failed request. */
export interface Said {
  readonly status: number | undefined
  readonly code: string | undefined
  /** Message, body and code. */
  readonly text: string
}

/** Codes and names of errors that mean an overflow. */
const codes =
  /context_length_exceeded|exceed_context_size_error|model_context_window_exceeded|request_too_large|ContextWindowExceededError|model_max_prompt_tokens_exceeded|tokens_limit_reached/i

const wordings = [
  // Anthropic, Bedrock, Vertex, Fireworks, Ollama
  /prompt (?:is )?too long|input (?:prompt )?.{0,40}is too long/i,
  /exceed(?:s|ed)? (?:the |this )?(?:model(?:'s)? )?(?:available |maximum |max )?context(?: (?:limit|window|length|size)|[^\w ]|$)/i,
  // OpenAI, vLLM, DeepSeek, OpenRouter, Mistral, xAI
  /maximum (?:context|model|prompt) length/i,
  // Groq, Cerebras
  /reduce the length of the (?:messages|prompt|input)/i,
  // llama.cpp while it generates, MiniMax
  /context (?:size|window|length) (?:(?:has been |was |is )?exceeded|exceeds limit\b)|context shift is disabled/i,
  // SGLang
  /longer than the (?:model's )?(?:maximum )?(?:context|model) length|input length .{0,40}exceeds/i,
  // LM Studio
  /greater than the context length|keep the first \d+ tokens when context|reached (?:the )?context length/i,
  // Gemini, Vertex, Bedrock
  /input token count .{0,60}(?:exceeds the maximum|only supports)|number of input tokens exceeds/i,
  // TGI, Together
  /`inputs`.{0,40} must (?:be <=|have less than) \d/i,
  // Moonshot, z.ai, DashScope, Copilot, Cohere, GitHub
  /exceeded model token limit|prompt exceeds max length|tokens in request more than max tokens allowed/i,
  /range of input length should be|prompt token count of \d+ exceeds|tokens in the prompt cannot exceed/i,
  /request body too large .{0,80}max size: \d+ tokens/i
]

/** Statuses that rule out overflow, whatever the text says: a token rate limit is not an overflow. */
const ruledOut: ReadonlySet<number> = new Set([401, 402, 403, 404, 429])

/** z.ai's code for a prompt that is too long. */
const zai = "1261"

const count = (digits: string | undefined): number => Number(digits?.replaceAll(",", "") ?? NaN)

/** A rate limit in tokens a minute that is smaller than the request: waiting never helps. */
export const exceedsRate = (text: string): boolean => {
  const [, limit, requested] = /\(TP[MD]\): Limit ([\d,]+), (?:Used [\d,]+, )?Requested ([\d,]+)/i.exec(text) ?? []
  return count(requested) > count(limit)
}

/** A smaller limit is that of a field, such as a name or a description, and not of the conversation. */
const longestField = 100_000

const isLongText = (text: string): boolean => {
  const [, maximum] = /string too long\. expected a string with maximum length (\d+)/i.exec(text) ?? []
  return maximum !== undefined
    ? count(maximum) >= longestField
    : /string_above_max_length/i.test(text) && !/'tools|\.(?:name|id|call_id)\b/i.test(text)
}

const picture =
  /\b(?:image|picture|pdf|file|document)s?\b(?: size| dimensions)? (?:exceeds?|is too large|are too large)/i

const inputs =
  /([\d,]+) (?:input tokens|in (?:the|your) (?:messages|prompt)|tokens from the input|of \w+ input|`inputs` tokens)/gi

/** The allowance for the answer exceeds the window, not the input: a summary would not help. */
const isAnswer = (text: string): boolean => {
  const window = contextTokens(text)
  const input = [...text.matchAll(inputs)].map(([, digits]) => count(digits))
  return window !== undefined && input.length > 0 && 2 * input.reduce((sum, each) => sum + each, 0) <= window
}

/** Whether the request exceeded the context window. */
export const isOverflow = ({ code = "", status, text }: Said): boolean => {
  if (status !== undefined && ruledOut.has(status)) return false
  if (/rate_limit/i.test(code)) return status === 413 && exceedsRate(text)
  if (picture.test(text)) return false
  if (codes.test(text) || code === zai || status === 413) return true
  return isLongText(text) || (wordings.some((wording) => wording.test(text)) && !isAnswer(text))
}

/** Where the words name the window. The first that fits counts. */
const windows = [
  /\b(?:context|model|prompt) length\W{0,3}(?:(?:is|of|only) ){0,3}\(?([\d,]+)/i,
  /([\d,]+) maximum context length/i,
  /> ([\d,]+) maximum\b/i,
  /exceed context limit: [\d,]+ \+ [\d,]+ > ([\d,]+)/i,
  /context (?:size|window|length)(?: limit)? \(([\d,]+)/i,
  /maximum number of tokens allowed \(([\d,]+)/i,
  /maximum allowed length \(([\d,]+)/i,
  /model token limit: ([\d,]+)/i,
  /exceeds the limit of ([\d,]+)/i,
  /input length should be \[\d+, ?([\d,]+)\]/i,
  /`inputs`.{0,40} must (?:be <=|have less than) ([\d,]+)/i,
  /prompt cannot exceed ([\d,]+)/i,
  /while limit is ([\d,]+)/i,
  /only supports up to ([\d,]+)/i,
  /max size: ([\d,]+) tokens/i,
  /"n_ctx": ?([\d,]+)/i
]

/** The window in tokens that the words name; undefined if none is named, or a number that no window has. */
export const contextTokens = (text: string): number | undefined => {
  for (const window of windows) {
    const tokens = count(window.exec(text)?.[1])
    if (tokens >= 256 && tokens <= 1e9) return tokens
  }
  return undefined
}
