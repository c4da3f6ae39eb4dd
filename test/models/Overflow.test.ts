/** Wordings of servers for a request that is too long, as they were reported to trackers of comparable tools. */
import { AiError } from "@effect/ai"
import { assert, describe, it } from "@effect/vitest"
import { Option } from "effect"
import { contextTokens } from "../../packages/core/src/model/Overflow.ts"
import { classifyError } from "../../packages/core/src/model/ProviderError.ts"

const failure = (status: number, body: unknown) =>
  classifyError(
    new AiError.HttpResponseError({
      module: "Test",
      method: "streamText",
      reason: "StatusCode",
      request: { method: "POST", url: "http://h/v1/chat", urlParams: [], hash: Option.none(), headers: {} },
      response: { status, headers: {} },
      body: typeof body === "string" ? body : JSON.stringify(body)
    })
  )

const says = (message: string, more: object = {}) => ({ error: { message, ...more } })

const groq = (limit: number, requested: number) =>
  says(
    `Request too large for model \`m\` in organization \`o\` on tokens per minute (TPM): Limit ${limit}, Requested ${requested}, please reduce your message size and try again.`,
    { type: "tokens", code: "rate_limit_exceeded" }
  )

/** Server, status, body, and the window that the body names. */
const overflows: ReadonlyArray<readonly [string, number, unknown, number?]> = [
  ["Anthropic", 400, says("prompt is too long: 213462 tokens > 200000 maximum"), 200_000],
  [
    "Anthropic",
    400,
    says("input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length"),
    200_000
  ],
  ["Bedrock", 400, { message: "Input is too long for requested model." }],
  ["Bedrock", 400, { message: "Input Tokens Exceeded: Number of input tokens exceeds maximum length." }],
  [
    "OpenAI",
    400,
    says(
      "This model's maximum context length is 128000 tokens. However, your messages resulted in 130001 tokens. Please reduce the length of the messages.",
      { code: "context_length_exceeded" }
    ),
    128_000
  ],
  [
    "OpenAI",
    400,
    says(
      "This model's maximum context length is 8192 tokens. However, you requested 9100 tokens (8100 in the messages, 1000 in the completion)."
    ),
    8192
  ],
  [
    "OpenAI",
    400,
    says(
      "Invalid 'input[40].output': string too long. Expected a string with maximum length 10485760, but got a string with length 11000000 instead.",
      { code: "string_above_max_length" }
    )
  ],
  ["OpenAI", 400, says("The text is too large.", { code: "string_above_max_length" })],
  [
    "llama.cpp",
    400,
    says("request (64038 tokens) exceeds the available context size (64000 tokens), try increasing it", {
      code: 400,
      type: "exceed_context_size_error"
    }),
    64_000
  ],
  [
    "llama.cpp",
    400,
    says("the request exceeds the available context size, try increasing it", { n_prompt_tokens: 5000, n_ctx: 4096 }),
    4096
  ],
  ["llama.cpp", 500, says("Context size has been exceeded.", { code: 500, type: "server_error" })],
  ["vLLM", 400, says("max_tokens must be at least 1, got -1200.")],
  ["a gateway", 400, says("context window limit reached, please start a new chat")],
  ["llama.cpp", 500, says("the context is full: context shift is disabled", { code: 500, type: "server_error" })],
  ["llama.cpp", 500, says("context size exceeded")],
  [
    "vLLM",
    400,
    says("This model's maximum context length is 4096 tokens. However, you requested 5000 tokens in the messages"),
    4096
  ],
  [
    "vLLM",
    400,
    says(
      "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is 32768 tokens and your request has 30000 input tokens (4096 > 32768 - 30000)."
    ),
    32_768
  ],
  [
    "vLLM",
    400,
    {
      object: "error",
      message: "The decoder prompt (length 9000) is longer than the maximum model length of 8192.",
      code: 400
    },
    8192
  ],
  [
    "SGLang",
    400,
    {
      object: "error",
      message: "The input (1492905 tokens) is longer than the model's context length (1048576 tokens).",
      code: 400
    },
    1_048_576
  ],
  ["SGLang", 400, says("Input length (40000 tokens) exceeds the maximum allowed length (32768 tokens)."), 32_768],
  ["SGLang", 400, says("Requested token count exceeds the model's maximum context length of 32768 tokens."), 32_768],
  ["LM Studio", 400, "The number of tokens to keep from the initial prompt is greater than the context length."],
  [
    "LM Studio",
    400,
    {
      error:
        "Trying to keep the first 6969 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough."
    },
    4096
  ],
  ["LM Studio", 400, { error: "Reached context length of 4096 tokens with model (arch: qwen3)." }, 4096],
  ["Ollama", 400, { error: "input length exceeds the context length" }],
  ["Ollama", 400, { error: "prompt too long; exceeded max context length by 200 tokens" }],
  [
    "TGI",
    422,
    {
      error:
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8192. Given: 8500 `inputs` tokens and 1024 `max_new_tokens`",
      error_type: "validation"
    },
    8192
  ],
  [
    "TGI",
    422,
    {
      error: "Input validation error: `inputs` must have less than 1024 tokens. Given: 1168.",
      error_type: "validation"
    },
    1024
  ],
  [
    "Together",
    422,
    says(
      "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 131073. Given: 140000 `inputs` tokens and 2048 `max_new_tokens`"
    ),
    131_073
  ],
  [
    "Gemini",
    400,
    [
      says("The input token count (1196265) exceeds the maximum number of tokens allowed (1048576).", {
        code: 400,
        status: "INVALID_ARGUMENT"
      })
    ],
    1_048_576
  ],
  [
    "Vertex",
    400,
    says("Unable to submit request because the input token count is 32825 but model only supports up to 32768."),
    32_768
  ],
  [
    "Mistral",
    400,
    {
      object: "error",
      message:
        "Prompt contains 140000 tokens and 0 draft tokens, too large for model with 131072 maximum context length",
      code: "3051"
    },
    131_072
  ],
  ["Groq", 400, says("Please reduce the length of the messages or completion.")],
  [
    "Cerebras",
    400,
    says("Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192"),
    8192
  ],
  [
    "xAI",
    400,
    {
      code: "Client specified an invalid argument",
      error: "This model's maximum prompt length is 131072 but the request contains 537812 tokens."
    },
    131_072
  ],
  [
    "Moonshot",
    400,
    says("Invalid request: Your request exceeded model token limit: 262144 (requested: 269030)"),
    262_144
  ],
  ["MiniMax", 400, says("invalid params, context window exceeds limit (2013)", { type: "bad_request_error" })],
  ["z.ai", 400, says("Prompt exceeds max length", { code: "1261" })],
  ["z.ai", 400, says("输入过长", { code: 1261 })],
  ["z.ai", 400, says("tokens in request more than max tokens allowed")],
  ["Copilot", 400, says("prompt token count of 139639 exceeds the limit of 128000", { code: "" }), 128_000],
  ["Copilot", 400, says("too long", { code: "model_max_prompt_tokens_exceeded" })],
  ["GitHub Models", 413, says("Request body too large for gpt-4o model. Max size: 8000 tokens."), 8000],
  [
    "DashScope",
    400,
    says("<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]"),
    129_024
  ],
  [
    "Cohere",
    400,
    { message: "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 9000" },
    4081
  ],
  ["Fireworks", 400, says("The prompt is too long: 140000, model maximum context length: 131071"), 131_071],
  [
    "OpenRouter",
    400,
    says(
      "This endpoint's maximum context length is 163840 tokens. However, you requested about 170000 tokens (150000 of text input, 20000 of tool input)."
    ),
    163_840
  ],
  ["LiteLLM", 400, { detail: "ContextWindowExceededError: Hosted_vllmException - the request does not fit" }],
  [
    "DeepSeek",
    400,
    says("This model's maximum context length is 131072 tokens. However, you requested 140000 tokens"),
    131_072
  ],
  ["watsonx", 400, says("Input exceeds context window size")],
  ["Novita", 400, says("the total tokens of the input exceed the model's context")],
  ["nginx", 413, "<html><head><title>413 Request Entity Too Large</title></head></html>"],
  ["a gateway without words", 413, ""],
  [
    "vLLM",
    400,
    says(
      "You passed 99073 input tokens and requested 32000 output tokens. However, the model's context length is only 131072 tokens, resulting in a maximum input length of 99072 tokens."
    ),
    131_072
  ],
  ["vLLM", 400, says("Input length (265330) exceeds model's maximum context length (262144)."), 262_144],
  ["vLLM", 400, says("This model's maximum sequence length is 8192 tokens"), 8_192],
  [
    "Azure",
    400,
    says("Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 509178 tokens."),
    272_000
  ],
  ["Perplexity", 400, says("The total length of all messages is too long.")],
  ["Perplexity", 400, says("Maximum number of tokens exceeded")],
  ["Bedrock", 400, says("Too many input tokens. Max input tokens: 8192, request input token count: 11530"), 8_192],
  ["Zhipu", 400, says("Prompt 超长")],
  ["DashScope", 400, says("输入长度超限")],
  ["DashScope", 400, says("Total message token length exceed model limit")],
  ["Moonshot", 400, says("请求的上下文长度超过模型限制")],
  ["Moonshot", 400, says("Input token length too long")],
  ["Volcengine", 400, says("Input length 135200 exceeds the maximum length 131072"), 131_072],
  ["Qianfan", 400, says("the max input characters is 20000")],
  ["Hunyuan", 400, says("input token length exceeds the limit of the model")],
  ["Yi", 400, says("the prompt + max_tokens is longer than the model's max length 4096"), 4096],
  ["SiliconFlow", 400, says("length of prompt_tokens (130000) must be less than max_seq_len (98304)."), 98_304],
  ["DeepInfra", 400, says("Requested input length 40000 exceeds maximum input length 32768"), 32_768],
  ["Hyperbolic", 400, says("Requested 150000 tokens, max context is 131072"), 131_072],
  ["SambaNova", 400, says("The prompt is 17000 tokens long, but the maximum sequence length is 16384"), 16_384],
  [
    "Cloudflare",
    400,
    says(
      "The estimated number of input and maximum output tokens (27234) exceeded this model context window limit (24000)."
    ),
    24_000
  ],
  ["Databricks", 400, says("prompt token count (9000) cannot exceed 8192. Total tokens is (9000)"), 8_192],
  ["Databricks", 400, says("requestSize cannot exceed 4194304 bytes")],
  [
    "watsonx",
    400,
    says("the number of input tokens 9000 cannot exceed the total tokens limit 8191 for this model"),
    8_191
  ],
  ["AI21", 400, says("Prompt is too long. Max length: 256000 tokens"), 256_000],
  ["Cohere", 400, says("too many tokens: size limit exceeded by 3000 tokens. Try using shorter or fewer inputs")],
  [
    "Cohere",
    400,
    says("total number of tokens (input and prediction) cannot exceed 128000 - received 140000."),
    128_000
  ],
  ["NIM", 400, says("Input exceeds the model's max_seq_len")],
  ["TensorRT-LLM", 400, says("Prompt length (9000) exceeds maximum input length (8192)"), 8_192],
  [
    "TensorRT-LLM",
    400,
    says(
      "default_max_tokens (-1000) must be greater than 0, default_max_tokens (-1000) = max_seq_len (32768) - prompt_len (33768)"
    ),
    32_768
  ],
  ["LMDeploy", 400, says("The input length 40000 is longer than session_len 32768"), 32_768],
  ["TabbyAPI", 400, says("Prompt length 40000 is greater than max_seq_len 32768"), 32_768],
  ["KoboldCpp", 400, says("prompt exceeds max ctx")],
  ["text-generation-webui", 400, says("prompt is longer than the truncation length")],
  ["MLX", 400, says("Prompt too large for the model's context window")],
  ["llama.cpp", 400, says("input is too large to process. increase the physical batch size")],
  ["llama.cpp", 400, says("Input prompt is too big compared to KV size. Please try increasing KV size.")],
  ["llama.cpp", 400, says("slot context of 8192 tokens exceeded")],
  ["llama-cpp-python", 400, says("Requested tokens (4242) exceed context window of 4096"), 4_096],
  ["llamafile", 400, says("Prompt tokens 9000 exceed n_ctx 8192"), 8_192],
  ["Ollama", 400, says("the prompt is longer than the context window")],
  ["Jan", 400, says("context length of 4096 exceeded"), 4_096],
  ["LM Studio", 400, says("Cannot truncate prompt with n_keep (8000) >= n_ctx (4096)"), 4_096],
  ["Gemini", 400, says("Request payload size exceeds the limit: 20971520 bytes.")],
  ["Gemini", 400, says("The input token count exceeds the maximum number of tokens allowed 1048576."), 1_048_576],
  ["Copilot", 400, says("Request too large: the prompt has 140000 tokens and the limit is 128000")],
  ["CodeWhisperer", 400, says("CONTENT_LENGTH_EXCEEDS_THRESHOLD")],
  [
    "OpenAI",
    400,
    says(
      "Invalid 'messages': array too long. Expected an array with maximum length 2048, but got an array with length 2300 instead."
    )
  ],
  ["Snowflake", 400, says("max tokens of 32768 exceeded")],
  ["Friendli", 400, says("The prompt length exceeds the maximum supported length")],
  ["Parasail", 400, says("Prompt length is larger than model's maximum length")],
  ["ExLlama", 400, says("Sequence length exceeds cache size")],
  ["Inception", 400, says("Number of tokens in the request exceeds the maximum allowed")],
  ["Cerebras", 400, says("Current length is 140211 while limit is 131072"), 131_072],
  ["Writer", 400, says("Input tokens limit exceeded")],
  ["Yandex", 400, says("number of input tokens must be no more than 32768, got 40000"), 32_768],
  ["a plan without the window of a million", 429, says("Extra usage is required for long context requests.")],
  ["MiniMax", 400, says("token limit", { code: 1039 })],
  ["Volcengine", 400, says("Total tokens of image and text exceed max message tokens", { code: "OutofContextError" })],
  ["Writer", 400, { errors: [{ description: "Input tokens limit exceeded" }] }]
]

describe("a request that is too long", () => {
  for (const [server, status, body, window] of overflows) {
    it(`MD-31: ${server}'s ${status} is an overflow and not retried: ${JSON.stringify(body).slice(0, 90)}`, () => {
      const { overflow, retryable } = failure(status, body)
      assert.deepStrictEqual({ overflow, retryable }, { overflow: true, retryable: false })
    })
    it(`MD-682: ${server}'s ${status} names ${window ?? "no window"}: ${JSON.stringify(body).slice(0, 90)}`, () => {
      assert.strictEqual(contextTokens(JSON.stringify(body)), window)
    })
  }

  for (const [what, status, body] of [
    [
      "the answer's limit",
      400,
      says("max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens")
    ],
    [
      "the answer's limit",
      400,
      says(
        "max_tokens is too large: 100000. This model supports at most 16384 completion tokens, whereas you provided 100000."
      )
    ],
    [
      "the answer's limit at vLLM",
      400,
      says(
        "'max_tokens' or 'max_completion_tokens' is too large: 40000. This model's maximum context length is 32768 tokens and your request has 120 input tokens (40000 > 32768 - 120)."
      )
    ],
    [
      "the answer's limit at TGI",
      422,
      {
        error: "`inputs` tokens + `max_new_tokens` must be <= 8192. Given: 20 `inputs` tokens and 9000 `max_new_tokens`"
      }
    ],
    ["tokens in a minute", 429, says("Rate limit reached: maximum context length tokens per min")],
    ["tokens in a minute at Groq", 413, groq(6000, 5000)],
    ["a picture", 400, says("messages.0.content.1.image: image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes")],
    ["a picture", 413, says("the image is too large")],
    [
      "a description",
      400,
      says("Invalid 'tools[0].function.description': string too long. Expected a string with maximum length 1024", {
        code: "string_above_max_length"
      })
    ],
    [
      "an id",
      400,
      says("Invalid 'input[3].call_id': string too long. Expected a string with maximum length 64, but got 80.", {
        code: "string_above_max_length"
      })
    ],
    [
      "the answer's limit at Volcengine",
      400,
      says(
        "The parameter `max_tokens` specified in the request are not valid: integer above maximum value, expected a value <= 32768"
      )
    ],
    ["many tools", 400, says("Invalid 'tools': array too long. Expected an array with maximum length 128.")],
    ["many tools", 400, says("Too many tools in the request: 600 exceeds the maximum of 512")],
    ["tokens in a minute", 400, says("Too many tokens per minute, please wait before trying again.")],
    ["tokens in a minute", 500, says("This request exceeds the limit of 30000 tokens per minute")],
    ["many marks", 400, says("A maximum of 4 blocks with cache_control may be provided. Found 5.")],
    ["a budget", 400, says("thinking.budget_tokens: Input should be greater than or equal to 1024 tokens")],
    [
      "what the model wrote",
      400,
      says("Failed to call a function.", { code: "tool_use_failed", failed_generation: "the prompt is too long" })
    ],
    [
      "a request that the server repeats",
      422,
      { detail: [{ loc: ["body", "x"], msg: "Field required", input: { messages: ["the prompt is too long"] } }] }
    ],
    ["an argument's words", 400, says("the tool argument `context window` exceeds limits of your plan")],
    ["an account's credit", 402, says("prompt is too long for your plan")]
  ] as const) {
    it(`MD-680: ${what} is no overflow: ${JSON.stringify(body).slice(0, 90)}`, () => {
      assert.isFalse(failure(status, body).overflow)
    })
  }

  it("MD-681: a request that exceeds a minute's tokens is an overflow as a 413, and final as a 429", () => {
    const read = (status: number) => {
      const { overflow, retryable } = failure(status, groq(6000, 14_368))
      return { overflow, retryable }
    }
    assert.deepStrictEqual(read(413), { overflow: true, retryable: false })
    assert.deepStrictEqual(read(429), { overflow: false, retryable: false })
  })

  it("MD-682: a number that no window has is none", () => {
    assert.isUndefined(contextTokens("This model's maximum context length is 12 tokens."))
  })
})
