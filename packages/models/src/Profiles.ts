/**
 * What each model server accepts, as data: lowering and the writers read it, nothing else knows a server by name. A host overrides
 * any field. One row for each known server and model family; facts come from the servers' public documentation and the texts of
 * their errors. Spec: MD-80..MD-89, MD-120..MD-127, MD-760 in specs/models.md.
 */
import { Struct } from "effect"
import type { ModelInfo } from "@daybook/core/model/ModelResolver"

/** The protocols: Messages, Responses, chat completions, and Gemini's own. */
export type Api = "anthropic" | "openai" | "openai-compatible" | "gemini"

/** The rules of one server. */
export interface Profile {
  /** A name for people: "DeepSeek". */
  readonly name: string
  readonly api: Api
  /** The address, up to the protocol's path. Absent if each user has another. */
  readonly baseUrl?: string
  /** Environment variables of its key, the usual one first. */
  readonly keys: ReadonlyArray<string>
  /** The default model of a server for which a key is enough. */
  readonly model?: string
  /** The hosts that tell this server, with the port if it tells: `api.deepseek.com`, `localhost:11434`; `*` is any one label. */
  readonly hosts: ReadonlyArray<string>
  /** Whether a request meets the chat template of any model, so that the rules of the model's family apply as well. */
  readonly anyModel: boolean
  /**
   * `anywhere`: system messages may stand between others. `leading`: several, before all others. `one`: a single one, so that
   * several are joined.
   */
  readonly system: "anywhere" | "leading" | "one"
  readonly systemRole: "system" | "developer"
  /** Whether user and assistant messages must alternate, so that neighbours are joined. */
  readonly alternates: boolean
  /** Whether an answer must stand between a tool's result and a user message. */
  readonly answersResults: boolean
  /** The form of call ids. `exact`: `length` letters and digits; otherwise at most `length` of the characters in `set`. */
  readonly callIds: { readonly set: "word" | "printable"; readonly length: number; readonly exact: boolean }
  /** The content of an answer that has calls and no text. */
  readonly noText: "" | null
  /** Where thinking stands in an answer, and when it is sent back. */
  readonly thinking: {
    /**
     * A field of the message, by default the one in which it came; `reasoning_details`: a list of objects; `content`: parts of the
     * content.
     */
    readonly field: "reasoning_content" | "reasoning" | "reasoning_details" | "content"
    /** `calls`: with answers that have calls. */
    readonly back: "never" | "calls" | "always"
    /** Whether an answer to which `back` applies is rejected without the field, or with an empty one. */
    readonly required: boolean
  }
  /** Whether thinking may stand between tags in the text, which servers without the parser of their model leave there. */
  readonly tags: boolean
  /** Google's signature for calls of other models: the first call of each answer is rejected without one. */
  readonly signature?: string
  /** How a level of effort is asked for. `thinking.type` switches thinking on and off, `thinking` has a level as well. */
  readonly effort:
    | "reasoning_effort"
    | "reasoning.effort"
    | "thinking"
    | "thinking.type"
    | "enable_thinking"
    | "chat_template_kwargs"
    | "none"
  /** Media that its servers take, unless the catalogue knows the model. */
  readonly media: NonNullable<ModelInfo["media"]>
  /** Most pictures of one request. */
  readonly pictures: number
  readonly maxTokens: "max_tokens" | "max_completion_tokens" | "none"
  readonly keyHeader: "own" | "bearer"
  /** Whether Anthropic's cache marks are sent. */
  readonly cacheMarks: boolean
  /** Whether the usage is asked for with `stream_options`. */
  readonly streamOptions: boolean
  /** Whether a tool choice is accepted. Otherwise none is sent: only `none` is, since it forbids calls. */
  readonly toolChoice: boolean
  /** `typed`: tools are rejected unless each schema in theirs has a type. */
  readonly schemas: "any" | "typed"
  /** More fields of each request. */
  readonly body: Readonly<Record<string, unknown>>
  /** How a list of models with their windows is read: GET `models`, Ollama's `/api/show`, llama.cpp's `/props`. */
  readonly listing: "models" | "ollama" | "llama.cpp" | "none"
}

/** A row of the table: what differs from the row under it. */
type Row = Partial<Profile> & Pick<Profile, "name">

const over = (under: Profile, row: Row): Profile => ({
  ...Struct.omit(under, "baseUrl", "model"),
  keys: [],
  hosts: row.baseUrl === undefined ? [] : [new URL(row.baseUrl).host],
  ...row
})

const anthropic: Profile = {
  name: "Anthropic",
  api: "anthropic",
  baseUrl: "https://api.anthropic.com/v1",
  keys: ["ANTHROPIC_API_KEY"],
  model: "claude-sonnet-5-5",
  hosts: ["api.anthropic.com"],
  anyModel: false,
  system: "leading",
  systemRole: "system",
  alternates: true,
  answersResults: false,
  callIds: { set: "word", length: 64, exact: false },
  noText: null,
  thinking: { field: "content", back: "always", required: false },
  effort: "none",
  media: ["image", "pdf"],
  pictures: 100,
  maxTokens: "max_tokens",
  keyHeader: "own",
  tags: false,
  cacheMarks: true,
  streamOptions: false,
  toolChoice: true,
  schemas: "any",
  body: {},
  listing: "models"
}

const openai = over(anthropic, {
  name: "OpenAI",
  api: "openai",
  baseUrl: "https://api.openai.com/v1",
  keys: ["OPENAI_API_KEY"],
  model: "gpt-6.1-terra",
  system: "anywhere",
  systemRole: "developer",
  alternates: false,
  callIds: { set: "printable", length: 64, exact: false },
  effort: "reasoning.effort",
  pictures: 500,
  maxTokens: "max_completion_tokens",
  cacheMarks: false
})

const gemini = over(openai, {
  name: "Google Gemini",
  api: "gemini",
  baseUrl: "https://generativelanguage.googleapis.com/v1beta",
  keys: ["GEMINI_API_KEY", "GOOGLE_API_KEY"],
  model: "gemini-3.8-flash",
  system: "leading",
  alternates: true
})

/** Thinking that is sent back in the field in which it came. */
const thinking = (back: Profile["thinking"]["back"], required = false): Profile["thinking"] => ({
  field: "reasoning_content",
  back,
  required
})

/** A server of chat completions with known models: one system message, alternating roles, which all of them take. */
const service = over(openai, {
  name: "OpenAI-compatible service",
  api: "openai-compatible",
  system: "one",
  systemRole: "system",
  alternates: true,
  // OpenAI's service accepts ids of at most 40 characters.
  callIds: { set: "printable", length: 40, exact: false },
  thinking: thinking("calls"),
  effort: "reasoning_effort",
  media: ["image"],
  pictures: 50,
  maxTokens: "max_tokens",
  streamOptions: true
})

/** A server of any model by itself. */
const anyModel = { anyModel: true, tags: true } as const

/** A server that runs any model, and one of which nothing is known: only what every chat template takes. */
const compatible = over(service, {
  name: "OpenAI-compatible server",
  keys: ["DAYBOOK_API_KEY"],
  ...anyModel,
  answersResults: true,
  media: ["image", "pdf"]
})

const local = over(compatible, { name: "local server", effort: "chat_template_kwargs", media: ["image"] })

const port = (number: number) => ({
  baseUrl: `http://localhost:${number}/v1`,
  hosts: [`localhost:${number}`, `127.0.0.1:${number}`]
})

/** Claude's alphabet within the length of chat completions. */
const claudeIds = { set: "word", length: 40, exact: false } as const
const nineLetters = { set: "word", length: 9, exact: true } as const

/** Thinking, which is on by default, excludes a tool choice. After calls each answer needs its thinking; elsewhere it is ignored. */
const deepseekRules = {
  answersResults: false,
  noText: "",
  thinking: thinking("always", true),
  toolChoice: false
} as const
const kimiRules = { ...deepseekRules, thinking: thinking("calls", true), schemas: "typed" } as const

const azure: Row = {
  name: "Azure OpenAI",
  keys: ["AZURE_OPENAI_API_KEY"],
  hosts: ["openai.azure.com", "services.ai.azure.com", "cognitiveservices.azure.com"],
  listing: "none"
}

const openaiChat = over(service, {
  name: "OpenAI chat completions",
  baseUrl: "https://api.openai.com/v1",
  system: "anywhere",
  systemRole: "developer",
  alternates: false,
  thinking: thinking("never"),
  media: ["image", "pdf"],
  pictures: 500,
  maxTokens: "max_completion_tokens"
})

/** A service with one key and a default model. */
const cloud = (name: string, baseUrl: string, key: string, model: string, rules: Partial<Profile> = {}): Profile =>
  over(service, { name, baseUrl, keys: [key], model, ...rules })

/** The profiles by provider name. A default model is chosen in this order: makers of models come before other servers. */
export const profiles: Readonly<Record<string, Profile>> = {
  anthropic,
  openai,
  google: gemini,
  deepseek: cloud("DeepSeek", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY", "deepseek-v4-pro", {
    ...deepseekRules,
    effort: "thinking",
    media: []
  }),
  moonshot: cloud("Moonshot (Kimi)", "https://api.moonshot.ai/v1", "MOONSHOT_API_KEY", "kimi-k3.1-pro", {
    hosts: ["api.moonshot.ai", "api.moonshot.cn"],
    ...kimiRules,
    effort: "thinking.type"
  }),
  zai: cloud("Z.ai (GLM)", "https://api.z.ai/api/paas/v4", "ZAI_API_KEY", "glm-5.3", {
    keys: ["ZAI_API_KEY", "ZHIPU_API_KEY"],
    hosts: ["api.z.ai", "open.bigmodel.cn"],
    thinking: thinking("always"),
    effort: "thinking",
    toolChoice: false
  }),
  dashscope: cloud(
    "DashScope (Qwen)",
    "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
    "DASHSCOPE_API_KEY",
    "qwen3.8-max",
    {
      hosts: ["dashscope-intl.aliyuncs.com", "dashscope.aliyuncs.com", "dashscope-us.aliyuncs.com"],
      effort: "enable_thinking",
      toolChoice: false
    }
  ),
  minimax: cloud("MiniMax", "https://api.minimax.io/v1", "MINIMAX_API_KEY", "MiniMax-M3", {
    hosts: ["api.minimax.io", "api.minimaxi.com", "api.minimax.chat"],
    thinking: { field: "reasoning_details", back: "always", required: false },
    effort: "none",
    media: [],
    toolChoice: false,
    // Without it, thinking stands between tags in the text.
    body: { reasoning_split: true },
    tags: true,
    listing: "none"
  }),
  mistral: cloud("Mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY", "mistral-large-latest", {
    answersResults: true,
    callIds: nineLetters,
    noText: "",
    thinking: { field: "content", back: "always", required: false },
    pictures: 8,
    streamOptions: false
  }),
  xai: cloud("xAI", "https://api.x.ai/v1", "XAI_API_KEY", "grok-4.7", { thinking: thinking("never") }),
  meta: over(openai, {
    name: "Meta",
    baseUrl: "https://api.meta.ai/v1",
    keys: ["META_API_KEY"],
    model: "muse-spark-1.3"
  }),
  xiaomi: cloud("Xiaomi MiMo", "https://api.xiaomimimo.com/v1", "XIAOMI_API_KEY", "mimo-v2.6-pro"),
  "kimi-coding": cloud(
    "Kimi for Coding",
    "https://api.kimi.com/coding/v1",
    "KIMI_API_KEY",
    "kimi-for-coding",
    kimiRules
  ),
  openrouter: cloud("OpenRouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", "anthropic/claude-sonnet-5.5", {
    ...anyModel,
    effort: "reasoning.effort",
    media: ["image", "pdf"]
  }),
  vercel: cloud(
    "Vercel AI Gateway",
    "https://ai-gateway.vercel.sh/v1",
    "AI_GATEWAY_API_KEY",
    "anthropic/claude-sonnet-5.5"
  ),
  opencode: cloud("OpenCode Zen", "https://opencode.ai/inference/openai/v1", "OPENCODE_API_KEY", "glm-5.3"),
  together: cloud("Together", "https://api.together.xyz/v1", "TOGETHER_API_KEY", "zai-org/GLM-5.3", {
    hosts: ["api.together.xyz", "api.together.ai"],
    ...anyModel
  }),
  fireworks: cloud(
    "Fireworks",
    "https://api.fireworks.ai/inference/v1",
    "FIREWORKS_API_KEY",
    "accounts/fireworks/models/glm-5p3",
    anyModel
  ),
  groq: cloud("Groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY", "openai/gpt-oss-120b", {
    tags: true,
    thinking: { field: "reasoning", back: "calls", required: false },
    pictures: 5,
    maxTokens: "max_completion_tokens"
  }),
  cerebras: cloud("Cerebras", "https://api.cerebras.ai/v1", "CEREBRAS_API_KEY", "gpt-oss-120b", {
    tags: true,
    thinking: { field: "reasoning", back: "calls", required: false },
    media: [],
    maxTokens: "max_completion_tokens"
  }),
  baseten: cloud("Baseten", "https://inference.baseten.co/v1", "BASETEN_API_KEY", "zai-org/GLM-5.3", { tags: true }),
  nvidia: cloud(
    "NVIDIA",
    "https://integrate.api.nvidia.com/v1",
    "NVIDIA_API_KEY",
    "nvidia/nemotron-3-ultra-550b-a55b",
    { tags: true }
  ),
  huggingface: cloud(
    "Hugging Face router",
    "https://router.huggingface.co/v1",
    "HF_TOKEN",
    "zai-org/GLM-5.3",
    anyModel
  ),
  "openai-compatible": compatible,
  "openai-chat": openaiChat,
  azure: over(openai, azure),
  "azure-chat": over(openaiChat, { ...azure, name: "Azure OpenAI chat completions" }),
  "google-openai": over(service, {
    name: "Google Gemini, compatible endpoint",
    baseUrl: "https://generativelanguage.googleapis.com/v1beta/openai",
    thinking: thinking("never"),
    signature: "skip_thought_signature_validator",
    media: ["image", "pdf"]
  }),
  bedrock: over(openaiChat, {
    name: "Amazon Bedrock",
    keys: ["AWS_BEARER_TOKEN_BEDROCK"],
    hosts: ["bedrock-runtime.*.amazonaws.com", "bedrock-mantle.*.api.aws"],
    system: "one",
    systemRole: "system",
    alternates: true,
    media: []
  }),
  // The token of GitHub that environments often hold must not select a model by itself, so neither row has a variable.
  "github-models": over(service, {
    name: "GitHub Models",
    baseUrl: "https://models.github.ai/inference",
    thinking: thinking("never"),
    listing: "none"
  }),
  "github-copilot": over(service, {
    name: "GitHub Copilot",
    baseUrl: "https://api.githubcopilot.com",
    hosts: ["githubcopilot.com"],
    callIds: claudeIds,
    thinking: thinking("never")
  }),
  litellm: over(compatible, { name: "LiteLLM", keys: ["LITELLM_API_KEY"] }),
  vllm: over(local, { name: "vLLM", keys: ["VLLM_API_KEY"] }),
  sglang: over(local, { name: "SGLang", keys: ["SGLANG_API_KEY"] }),
  "llama.cpp": over(local, { name: "llama.cpp", toolChoice: false, listing: "llama.cpp" }),
  ollama: over(local, {
    name: "Ollama",
    ...port(11434),
    answersResults: false,
    effort: "reasoning_effort",
    listing: "ollama"
  }),
  lmstudio: over(local, { name: "LM Studio", ...port(1234), effort: "reasoning_effort", toolChoice: false }),
  tgi: over(local, { name: "TGI", effort: "none", listing: "none" })
}

/** Rules of a model's chat template, on servers that run any model. The last row that fits wins. */
const families: ReadonlyArray<readonly [RegExp, Partial<Profile>]> = [
  [/qwen|qwq|llama|gpt-oss|glm|minimax/i, { answersResults: false }],
  [/gemma/i, { answersResults: true }],
  [/minimax/i, { thinking: thinking("always") }],
  [/kimi/i, kimiRules],
  [/deepseek/i, deepseekRules],
  [/[sx]tral/i, { callIds: nineLetters, answersResults: true }],
  [/claude/i, { cacheMarks: true, callIds: claudeIds, answersResults: false }],
  [/claude|gemini|grok|gpt-\d/i, { tags: false }]
]

/** Rules of a model wherever it runs. */
const everywhere: typeof families = [[/kimi|moonshot/i, { schemas: "typed" }]]

/** Rules of a model behind Anthropic's protocol: its servers want thinking back as it came, mostly without a signature. */
const behindMessages: typeof families = [
  [/deepseek|kimi|moonshot/i, { thinking: { field: "content", back: "always", required: true }, toolChoice: false }]
]

const defaults: Readonly<Record<Api, Profile>> = { anthropic, openai, "openai-compatible": compatible, gemini }

export const isApi = (api: string): api is Api => Object.hasOwn(defaults, api)

/** The host of an address, with its port. */
export const hostOf = (baseUrl: string | undefined): string =>
  baseUrl !== undefined && URL.canParse(baseUrl) ? new URL(baseUrl).host : ""

/** Whether the host, or a domain that it belongs to, fits the pattern, in which `*` is any one label. */
export const fits = (host: string, pattern: string): boolean => {
  const [ours, theirs] = [host.split("."), pattern.split(".")]
  const from = ours.length - theirs.length
  return from >= 0 && theirs.every((label, nth) => label === "*" || label === ours[from + nth])
}

/** The rules of a model at a provider: of the server that the host names, else of the address, else of the provider's name. */
export const profileOf = (asked: {
  readonly providerID: string
  readonly api: Api
  readonly baseUrl?: string | undefined
  readonly model: string
  readonly like?: string | undefined
  readonly fields?: Partial<Profile> | undefined
}): Profile => {
  const host = hostOf(asked.baseUrl)
  const called = (name = "") => {
    const known = Object.hasOwn(profiles, name) ? profiles[name] : undefined
    return known?.api === asked.api ? known : undefined
  }
  const found =
    called(asked.like) ??
    Object.values(profiles).find(({ api, hosts }) => api === asked.api && hosts.some((one) => fits(host, one))) ??
    called(asked.providerID) ??
    defaults[asked.api]
  const known = found.api === "anthropic" ? behindMessages : found.anyModel ? families : []
  const rules = [...everywhere, ...known].filter(([pattern]) => pattern.test(asked.model))
  const profile = rules.reduce<Profile>((under, [, fields]) => ({ ...under, ...fields }), found)
  return { ...profile, ...asked.fields }
}
