/**
 * Servers of chat completions: each one's style (`ChatStyle.ts`), rules (`ChatRules.ts`) and errors. Sources are the servers'
 * documentation and reports of what they send.
 */
import { checkChat } from "./ChatRules.ts"
import { details, type Errors, errors, field, parts, split, type Style, write } from "./ChatStyle.ts"
import { type ModelServer, refusal } from "./ModelServer.ts"

const server = (
  profile: string,
  model: string,
  style: Style,
  refusals: Errors,
  more: { readonly base?: string; readonly path?: string } = {}
): ModelServer => ({
  profile,
  api: "openai-compatible",
  model,
  base: more.base ?? "/v1",
  path: more.path ?? "/chat/completions",
  key: "authorization",
  pictures: style.rules.media !== false,
  thinks: style.rules.thinking !== undefined,
  write: write(model, style),
  check: checkChat(style.rules),
  refusals
})

const noForced = ["auto", "none"]
const sampling = ["temperature", "top_p", "stop", "reasoning_effort", "response_format"]
const known = ["model", "messages", "stream", "tools", "tool_choice", ...sampling]

export const chatServers: ReadonlyArray<ModelServer> = [
  server(
    "openai-chat",
    "gpt-6.1-terra",
    {
      rules: {
        systemRole: "developer",
        system: "anywhere",
        limit: "max_completion_tokens",
        ids: /^.{1,40}$/,
        strict: {
          answer: ["role", "content", "tool_calls", "refusal", "name"],
          request: [...known, "stream_options", "max_completion_tokens"]
        }
      }
    },
    errors("This model's maximum context length is 128000 tokens. However, your messages resulted in 130001 tokens.", {
      code: "context_length_exceeded"
    })
  ),
  server(
    "azure-chat",
    "house-gpt",
    {
      first: `data: ${JSON.stringify({ choices: [], created: 0, id: "", model: "", object: "", prompt_filter_results: [] })}\n\n`,
      rules: {
        systemRole: "developer",
        system: "anywhere",
        limit: "max_completion_tokens",
        rejects: ["reasoning_content", "reasoning"]
      }
    },
    errors("This model's maximum context length is 128000 tokens.", { code: "context_length_exceeded" }),
    { base: "/openai/v1" }
  ),
  server(
    "google-openai",
    "gemini-3.1-pro-preview",
    {
      whole: true,
      index: "zero",
      id: (nth, call) => `function-call-${nth}${call}`,
      calls: "stop",
      usage: "beside",
      call: { extra_content: { google: { thought_signature: "SIGNED" } } },
      rules: { signed: true, rejects: ["reasoning_content", "reasoning"] }
    },
    {
      overflow: refusal(400, [
        {
          error: {
            code: 400,
            message: "The input token count (1196265) exceeds the maximum number of tokens allowed (1048576).",
            status: "INVALID_ARGUMENT"
          }
        }
      ]),
      rateLimit: refusal(
        429,
        [{ error: { code: 429, message: "You exceeded your current quota.", status: "RESOURCE_EXHAUSTED" } }],
        { "retry-after": "7" }
      ),
      auth: refusal(400, [{ error: { code: 400, message: "API key not valid.", status: "INVALID_ARGUMENT" } }])
    },
    { base: "/v1beta/openai" }
  ),
  server(
    "openrouter",
    "anthropic/claude-sonnet-5",
    {
      first: ": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n",
      chunk: { provider: "Anthropic" },
      rules: { thinking: details, back: "calls", ids: /^[a-zA-Z0-9_-]{1,64}$/ }
    },
    errors("This endpoint's maximum context length is 163840 tokens. However, you requested about 170000 tokens", {
      code: 400
    }),
    { base: "/api/v1" }
  ),
  server(
    "deepseek",
    "deepseek-v4-pro",
    {
      first: ": keep-alive\n\n",
      usage: "beside",
      id: (nth, call) => `call_0${call}_${"x".repeat(20)}${nth}`,
      rules: {
        thinking: field("reasoning_content"),
        back: "all",
        required: "reasoning_content",
        choices: noForced,
        media: false,
        noNull: true
      }
    },
    errors("This model's maximum context length is 131072 tokens. However, you requested 140000 tokens")
  ),
  server(
    "moonshot",
    "kimi-k2.6",
    {
      usage: "choice",
      id: (nth, call, tool) => `${tool}:${nth * 10 + call}`,
      rules: {
        thinking: field("reasoning_content"),
        back: "calls",
        required: "reasoning_content",
        choices: noForced,
        noNull: true
      }
    },
    errors("Invalid request: Your request exceeded model token limit: 262144 (requested: 269030)")
  ),
  server(
    "zai",
    "glm-5.2",
    {
      whole: true,
      usage: "beside",
      id: (nth, call) => `call_-80${nth}${call}`,
      rules: { thinking: field("reasoning_content"), back: "calls", choices: ["auto"] }
    },
    errors("Prompt exceeds max length", { code: "1261" }),
    { base: "/api/paas/v4" }
  ),
  server(
    "minimax",
    "MiniMax-M3",
    {
      usage: "beside",
      repeats: true,
      chunk: { base_resp: { status_code: 0, status_msg: "" } },
      id: (nth, call) => `call_function_${nth}_${call}`,
      rules: { thinking: split, back: "all", needs: { reasoning_split: true }, media: false, choices: noForced }
    },
    errors("invalid params, context window exceeds limit (2013)", { type: "bad_request_error" })
  ),
  server(
    "dashscope",
    "qwen3.6-plus",
    {
      blanks: true,
      rules: { thinking: field("reasoning_content"), choices: noForced }
    },
    errors("<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]", {
      code: "invalid_parameter_error"
    }),
    { base: "/compatible-mode/v1" }
  ),
  server(
    "mistral",
    "mistral-medium-3-5",
    {
      whole: true,
      usage: "beside",
      id: (nth, call) => `A${nth}b${call}XXXXXXX`.slice(0, 9),
      rules: {
        thinking: parts,
        back: "all",
        ids: /^[a-zA-Z0-9]{9}$/,
        noUserAfterTool: true,
        strict: { answer: ["role", "content", "tool_calls", "prefix"], request: [...known, "max_tokens"] }
      }
    },
    {
      overflow: refusal(400, {
        object: "error",
        message:
          "Prompt contains 140000 tokens and 0 draft tokens, too large for model with 131072 maximum context length",
        type: "invalid_request_prompt",
        code: "3051"
      }),
      rateLimit: refusal(
        429,
        { object: "error", message: "Rate limit exceeded", type: "rate_limited", code: "1300" },
        { "retry-after": "7" }
      ),
      auth: refusal(401, { detail: "Unauthorized" })
    }
  ),
  server(
    "groq",
    "openai/gpt-oss-120b",
    {
      whole: true,
      usage: "x_groq",
      rules: {
        thinking: field("reasoning"),
        back: "calls",
        limit: "max_completion_tokens",
        rejects: ["reasoning_content", "reasoning_details"]
      }
    },
    errors("Please reduce the length of the messages or completion.", { code: "context_length_exceeded" }),
    { base: "/openai/v1" }
  ),
  server(
    "xai",
    "grok-4.3",
    { whole: true, rules: { thinking: field("reasoning_content") } },
    {
      ...errors(""),
      overflow: refusal(400, {
        code: "Client specified an invalid argument",
        error: "This model's maximum prompt length is 131072 but the request contains 537812 tokens."
      })
    }
  ),
  server(
    "together",
    "moonshotai/Kimi-K2-Thinking",
    {
      usage: "beside",
      rules: { thinking: field("reasoning"), back: "calls" }
    },
    errors(
      "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 131073. Given: 140000 `inputs` tokens and 2048 `max_new_tokens`",
      {},
      422
    )
  ),
  server(
    "fireworks",
    "accounts/fireworks/models/glm-5p1",
    {
      usage: "beside",
      rules: { thinking: field("reasoning_content"), back: "calls", rejects: ["reasoning"] }
    },
    errors("The prompt is too long: 140000, model maximum context length: 131071"),
    { base: "/inference/v1" }
  ),
  server(
    "cerebras",
    "gpt-oss-120b",
    {
      whole: true,
      usage: "beside",
      rules: {
        thinking: field("reasoning"),
        back: "calls",
        limit: "max_completion_tokens",
        media: false,
        strict: {
          answer: ["role", "content", "reasoning", "tool_calls"],
          request: [...known, "stream_options", "max_completion_tokens"]
        }
      }
    },
    {
      overflow: refusal(400, {
        message: "Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192",
        type: "invalid_request_error",
        param: "messages",
        code: "context_length_exceeded"
      }),
      rateLimit: refusal(
        429,
        {
          message: "Requests per minute limit exceeded",
          type: "too_many_requests_error",
          code: "request_quota_exceeded"
        },
        { "retry-after": "7" }
      ),
      auth: refusal(401, { message: "Wrong API Key", type: "invalid_request_error", code: "wrong_api_key" })
    }
  ),
  server(
    "huggingface",
    "zai-org/GLM-5.1",
    { usage: "beside", noDone: true, rules: { thinking: field("reasoning_content"), back: "calls" } },
    errors("This model's maximum context length is 131072 tokens.")
  ),
  server(
    "bedrock",
    "openai.gpt-oss-120b-1:0",
    {
      rules: { limit: "max_completion_tokens", media: false, rejects: ["reasoning_content", "reasoning"] }
    },
    { ...errors(""), overflow: refusal(400, { message: "Input is too long for requested model." }) },
    { base: "/openai/v1" }
  ),
  server(
    "github-copilot",
    "claude-sonnet-5",
    {
      whole: true,
      usage: "beside",
      rules: { ids: /^[a-zA-Z0-9_-]{1,64}$/, rejects: ["reasoning_content", "reasoning"] }
    },
    errors("prompt token count of 140000 exceeds the limit of 128000", { code: "model_max_prompt_tokens_exceeded" }),
    { base: "" }
  ),
  server(
    "litellm",
    "house-model",
    {
      rules: { thinking: field("reasoning_content"), back: "calls", alternates: true }
    },
    errors(
      "litellm.ContextWindowExceededError: Hosted_vllmException - The input (1492905 tokens) is longer than the model's context length",
      { type: null, code: "400" }
    ),
    { base: "" }
  ),
  server(
    "vllm",
    "Qwen/Qwen3.5-122B-A10B",
    {
      id: (nth, call) => `chatcmpl-tool-${nth}${call}${"f".repeat(20)}`,
      rules: { thinking: field("reasoning"), back: "calls" }
    },
    {
      ...errors(""),
      overflow: refusal(400, {
        object: "error",
        message: "The decoder prompt (length 9000) is longer than the maximum model length of 8192.",
        type: "BadRequestError",
        code: 400
      })
    }
  ),
  server(
    "sglang",
    "deepseek-ai/DeepSeek-V4-Flash",
    {
      index: "none",
      whole: true,
      rules: { thinking: field("reasoning_content"), back: "all", required: "reasoning_content" }
    },
    {
      ...errors(""),
      overflow: refusal(400, {
        object: "error",
        message: "Requested token count exceeds the model's maximum context length of 32768 tokens.",
        type: "BadRequestError",
        code: 400
      })
    }
  ),
  server(
    "llama.cpp",
    "gemma-4-26b",
    {
      id: (nth, call) => `${nth}${call}${"k".repeat(30)}`,
      rules: {
        thinking: field("reasoning_content"),
        back: "calls",
        alternates: true,
        noUserAfterTool: true,
        choices: ["auto", "none", "required"]
      }
    },
    errors(
      "the request exceeds the available context size, try increasing it",
      { type: "exceed_context_size_error", code: 400 },
      400
    )
  ),
  server(
    "ollama",
    "qwen3:8b",
    { whole: true, index: "zero", usage: "none", rules: { thinking: field("reasoning"), back: "calls" } },
    { ...errors(""), overflow: refusal(400, { error: "input length exceeds the context length" }) }
  ),
  server(
    "lmstudio",
    "mistralai/magistral-small-2509",
    {
      eol: "\r\n",
      id: (nth, call) => `${nth}${call}0000000`.slice(0, 9),
      rules: {
        thinking: field("reasoning_content"),
        back: "calls",
        alternates: true,
        noUserAfterTool: true,
        ids: /^[a-zA-Z0-9]{9}$/,
        choices: ["auto", "none", "required"]
      }
    },
    {
      ...errors(""),
      overflow: refusal(400, {
        error:
          "The number of tokens to keep from the initial prompt is greater than the context length. Try to load the model with a larger context length"
      })
    }
  ),
  server(
    "tgi",
    "google/gemma-4-31b-it",
    {
      whole: true,
      usage: "none",
      id: () => "0",
      rules: { alternates: true, noUserAfterTool: true }
    },
    {
      ...errors(""),
      overflow: refusal(422, {
        error:
          "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8192. Given: 8500 `inputs` tokens and 1024 `max_new_tokens`",
        error_type: "validation"
      })
    }
  )
]
