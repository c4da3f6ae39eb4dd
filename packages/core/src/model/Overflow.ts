/**
 * Tells from a provider's error whether a request was too long for the model. Known wordings come first; other servers are
 * understood by what their words are about: something sent, too much of it, and how it is measured. Pure.
 * Spec: MD-31, MD-680..MD-682, MD-780 in specs/models.md.
 */

/** What a provider said of a failed request. */
export interface Said {
  readonly status: number | undefined
  readonly code: string | undefined
  /** Message, body and code. A body may repeat the request, or what the model wrote. */
  readonly text: string
  /** The message, if one was found, else all of the text. */
  readonly words: string
}

/** Codes and names of errors that mean an overflow. */
const codes =
  /context_length_exceeded|exceed_context_size_error|model_context_window_exceeded|request_too_large|ContextWindowExceededError|model_max_prompt_tokens_exceeded|tokens_limit_reached|CONTENT_LENGTH_EXCEEDS_THRESHOLD|OutofContextError|prompt_too_l(?:arge|ong)|tokens_too_long/i

const wordings = [
  // Anthropic, Bedrock, Vertex, Fireworks, Ollama; OpenAI, vLLM, DeepSeek, OpenRouter, Mistral, xAI
  /prompt (?:is )?too long|input (?:prompt )?.{0,40}is too long|maximum (?:context|model|prompt) length/i,
  /exceed(?:s|ed)? (?:the |this )?(?:model(?:'s)? )?(?:available |maximum |max )?context(?: (?:limit|window|length|size)|[^\w ]|$)/i,
  // Groq, Cerebras
  /reduce the length of the (?:messages|prompt|input)/i,
  // llama.cpp while it generates, MiniMax
  /context (?:size|window|length)(?: limit)? (?:(?:has been |was |is )?(?:exceeded|reached|exhausted|full)\b|exceeds limit\b)|context shift is disabled/i,
  // LM Studio
  /greater than the context length|keep the first \d+ tokens when context|reached (?:the )?context length/i,
  // Gemini, Vertex, Bedrock
  /input token count .{0,60}(?:exceeds the maximum|only supports)|number of input tokens exceeds/i,
  // TGI, Together
  /\binputs\b.{0,40} must (?:be <=|have less than) \d/i,
  // DashScope, Copilot, Cohere
  /range of input length should be|prompt token count of \d+ exceeds|tokens in the prompt cannot exceed/i,
  // vLLM takes the prompt from the window; Cerebras, TensorRT-LLM, Snowflake, Yi, Perplexity
  /max_(?:completion_)?tokens must be at least 1, got -\d/i,
  /length is [\d,]+ while limit is|default_max_tokens \(-\d|max tokens of [\d,]+ exceeded|maximum number of tokens exceeded/i,
  /\b(?:prompt|input)(?: length| tokens)?(?: \([\d.]+\))? (?:\+|and) `?max_tokens`? (?:exceeds|is longer)/i,
  // OpenAI counts messages
  /invalid '(?:messages|input)': array too long/i
]

// The words of servers that are not in the list: what was sent, that it is too much, and of what.
const sent = /\b(?:prompt|input|message|request|sequence|conversation|context|quer(?:y|ies)|payload|n_keep)/i
const tooMuch =
  /exceed|too (?:long|large|big|many)|(?:long|great|larg|bigg|few|small|less)(?:er)? than|more than|at most|>=|max(?:imum)?\b|limit (?:is|of)/i
const measure =
  /\btokens?\b|\blength|\bcontext|\bcharacters\b|\bbytes\b|n_ctx|\bctx\b|(?:seq|model|session|input)_len|\bkv\b|\bwindow|\blimit\b/i
const alone = /\b(?:prompt|input|query|conversation|message|request)s? (?:is |are )?too (?:long|large|big)\b/i
const tokens = /too many (?:input |prompt )?tokens\b/i
const chinese =
  /(?:输入|提示|请求|上下文|内容|prompt|token).{0,30}(?:过长|超长|超限|(?:超过|超出).{0,10}(?:长度|上下文|限制|最大))/i
/** Limits of another kind, and of the answer. */
const otherwise =
  /per[ _](?:second|min|hour|day)|\b[TR]P[MD]\b|\brates?\b|quota|credit|\bplan\b|wait|max_\w*tokens|output|completion tokens|\btools?\b|function|schema|\bnames?\b|description|\bids?\b|images?|pictures?|pages?|files?|audio|video|header|temperature|logprobs|budget|每分钟|频率|图片/i

/** The start of the words: a server may repeat the request after them. */
const statedChars = 600

const isStated = (text: string): boolean =>
  text
    .slice(0, statedChars)
    .split(/(?<=[.!?])\s+|\n/)
    .some(
      (sentence) =>
        !otherwise.test(sentence) &&
        (alone.test(sentence) ||
          tokens.test(sentence) ||
          chinese.test(sentence) ||
          (sent.test(sentence) && tooMuch.test(sentence) && measure.test(sentence)))
    )

/** Anthropic's window of a million tokens is not in every plan: a shorter request succeeds. The status is that of a rate limit. */
const longPlan = /(?:extra usage|usage credits)\b.{0,20} required for (?:long|1M) context/i

/** Statuses that rule out overflow, whatever the text says: a token rate limit is not an overflow. */
const ruledOut: ReadonlySet<number> = new Set([401, 402, 403, 404, 429])

/** Codes for a prompt that is too long, of z.ai and MiniMax. */
const coded: ReadonlySet<string> = new Set(["1261", "1039", "status 1039"])

const count = (digits: string | undefined): number => Number(digits?.replaceAll(",", "") ?? NaN)

/** A rate limit in tokens a minute that is smaller than the request: waiting never helps. */
export const exceedsRate = (text: string): boolean => {
  const [, limit, requested] = /\(TP[MD]\): Limit ([\d,]+), (?:Used [\d,]+, )?Requested ([\d,]+)/i.exec(text) ?? []
  return count(requested) > count(limit)
}

/** A smaller limit concerns a field, such as a name or a description, and not the conversation. */
const longestField = 100_000

/** Whether a text of the request is too long, if the words are about one. */
const longText = (text: string): boolean | undefined => {
  const [, maximum] = /string too long\. expected a string with maximum length (\d+)/i.exec(text) ?? []
  return maximum !== undefined
    ? count(maximum) >= longestField
    : /string_above_max_length/i.test(text)
      ? !/'tools|\.(?:name|id|call_id)\b/i.test(text)
      : undefined
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
export const isOverflow = ({ code = "", status, text, words }: Said): boolean => {
  if (longPlan.test(words)) return true
  if (status !== undefined && ruledOut.has(status)) return false
  if (/rate_limit/i.test(code)) return status === 413 && exceedsRate(text)
  if (picture.test(words)) return false
  if (codes.test(text) || coded.has(code) || status === 413) return true
  return longText(text) ?? ((wordings.some((wording) => wording.test(words)) || isStated(words)) && !isAnswer(words))
}

/** Where the words name the window. The first that fits counts. */
const windows = [
  /\b(?:context|model) length\W{0,3}(?:(?:is|of|only) ){0,3}\(?([\d,]+)/i,
  /(?<!(?:string|array) with )\bmax(?:imum)?[ _](?!(?:completion_|output_|new_)?tokens)(?:(?!output)\w+[ _]){0,3}?(?:len(?:gth)?|tokens|context|sequence|allowed)(?: (?:of|is|allowed|length)|:)* ?\(?(\d[\d,]{2,})/i,
  /(?:configured limit of|session_len|n_ctx:?|context window(?: of| limit)?) \(?([\d,]+)/i,
  /(?:cannot exceed|no more than)(?: the \w+ \w+ limit)? ([\d,]+)\b(?! bytes)/i,
  /([\d,]+) maximum context length/i,
  /> ([\d,]+) maximum\b/i,
  /exceed context limit: [\d,]+ \+ [\d,]+ > ([\d,]+)/i,
  /context (?:size|window|length)(?: limit)? \(([\d,]+)/i,
  /model token limit: ([\d,]+)/i,
  /exceeds the limit of ([\d,]+)/i,
  /input length should be \[\d+, ?([\d,]+)\]/i,
  /\binputs\b.{0,40} must (?:be <=|have less than) ([\d,]+)/i,
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
