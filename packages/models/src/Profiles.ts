/**
 * The known servers and model families: one row each. Sources are the servers' public documentation and the texts of their errors.
 * Spec: MD-80..MD-89, MD-120..MD-127 in specs/models.md.
 */
import { Struct } from "effect"
import type { Api, Profile } from "./Profile.ts"

/** A row of the table: what differs from the row under it. */
type Row = Partial<Profile> & Pick<Profile, "name">

const over = (under: Profile, row: Row): Profile => ({
  ...Struct.omit(under, "baseUrl"),
  keys: [],
  hosts: row.baseUrl === undefined ? [] : [new URL(row.baseUrl).host],
  ...row
})

const anthropic: Profile = {
  name: "Anthropic",
  api: "anthropic",
  baseUrl: "https://api.anthropic.com/v1",
  keys: ["ANTHROPIC_API_KEY"],
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
  cacheMarks: true,
  streamOptions: false,
  toolChoice: true,
  body: {},
  listing: "models"
}

const openai = over(anthropic, {
  name: "OpenAI",
  api: "openai",
  baseUrl: "https://api.openai.com/v1",
  keys: ["OPENAI_API_KEY"],
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

/** A server that runs any model, and one of which nothing is known: only what every chat template takes. */
const compatible = over(service, {
  name: "OpenAI-compatible server",
  keys: ["DAYBOOK_API_KEY"],
  anyModel: true,
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
const kimiRules = { ...deepseekRules, thinking: thinking("calls", true) } as const

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

/** The profiles by provider name. */
export const profiles: Readonly<Record<string, Profile>> = {
  anthropic,
  openai,
  google: gemini,
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
  openrouter: over(service, {
    name: "OpenRouter",
    baseUrl: "https://openrouter.ai/api/v1",
    keys: ["OPENROUTER_API_KEY"],
    anyModel: true,
    effort: "reasoning.effort",
    media: ["image", "pdf"]
  }),
  deepseek: over(service, {
    name: "DeepSeek",
    baseUrl: "https://api.deepseek.com/v1",
    keys: ["DEEPSEEK_API_KEY"],
    ...deepseekRules,
    effort: "thinking",
    media: []
  }),
  moonshot: over(service, {
    name: "Moonshot (Kimi)",
    baseUrl: "https://api.moonshot.ai/v1",
    keys: ["MOONSHOT_API_KEY"],
    hosts: ["api.moonshot.ai", "api.moonshot.cn"],
    ...kimiRules,
    effort: "thinking.type"
  }),
  zai: over(service, {
    name: "Z.ai (GLM)",
    baseUrl: "https://api.z.ai/api/paas/v4",
    keys: ["ZAI_API_KEY", "ZHIPU_API_KEY"],
    hosts: ["api.z.ai", "open.bigmodel.cn"],
    thinking: thinking("always"),
    effort: "thinking",
    toolChoice: false
  }),
  minimax: over(service, {
    name: "MiniMax",
    baseUrl: "https://api.minimax.io/v1",
    keys: ["MINIMAX_API_KEY"],
    hosts: ["api.minimax.io", "api.minimaxi.com", "api.minimax.chat"],
    thinking: { field: "reasoning_details", back: "always", required: false },
    effort: "none",
    media: [],
    toolChoice: false,
    // Without it, thinking stands between tags in the text.
    body: { reasoning_split: true },
    listing: "none"
  }),
  dashscope: over(service, {
    name: "DashScope (Qwen)",
    baseUrl: "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
    keys: ["DASHSCOPE_API_KEY"],
    hosts: ["dashscope-intl.aliyuncs.com", "dashscope.aliyuncs.com", "dashscope-us.aliyuncs.com"],
    effort: "enable_thinking",
    toolChoice: false
  }),
  mistral: over(service, {
    name: "Mistral",
    baseUrl: "https://api.mistral.ai/v1",
    keys: ["MISTRAL_API_KEY"],
    answersResults: true,
    callIds: nineLetters,
    noText: "",
    thinking: { field: "content", back: "always", required: false },
    pictures: 8,
    streamOptions: false
  }),
  groq: over(service, {
    name: "Groq",
    baseUrl: "https://api.groq.com/openai/v1",
    keys: ["GROQ_API_KEY"],
    thinking: { field: "reasoning", back: "calls", required: false },
    pictures: 5,
    maxTokens: "max_completion_tokens"
  }),
  xai: over(service, {
    name: "xAI",
    baseUrl: "https://api.x.ai/v1",
    keys: ["XAI_API_KEY"],
    thinking: thinking("never")
  }),
  together: over(service, {
    name: "Together",
    baseUrl: "https://api.together.xyz/v1",
    keys: ["TOGETHER_API_KEY"],
    hosts: ["api.together.xyz", "api.together.ai"],
    anyModel: true
  }),
  fireworks: over(service, {
    name: "Fireworks",
    baseUrl: "https://api.fireworks.ai/inference/v1",
    keys: ["FIREWORKS_API_KEY"],
    anyModel: true
  }),
  cerebras: over(service, {
    name: "Cerebras",
    baseUrl: "https://api.cerebras.ai/v1",
    keys: ["CEREBRAS_API_KEY"],
    thinking: { field: "reasoning", back: "calls", required: false },
    media: [],
    maxTokens: "max_completion_tokens"
  }),
  huggingface: over(service, {
    name: "Hugging Face router",
    baseUrl: "https://router.huggingface.co/v1",
    keys: ["HF_TOKEN"],
    anyModel: true
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
  baseten: over(service, { name: "Baseten", baseUrl: "https://inference.baseten.co/v1", keys: ["BASETEN_API_KEY"] }),
  "kimi-coding": over(service, {
    name: "Kimi for Coding",
    baseUrl: "https://api.kimi.com/coding/v1",
    keys: ["KIMI_API_KEY"],
    ...kimiRules
  }),
  nvidia: over(service, { name: "NVIDIA", baseUrl: "https://integrate.api.nvidia.com/v1", keys: ["NVIDIA_API_KEY"] }),
  opencode: over(service, {
    name: "OpenCode Zen",
    baseUrl: "https://opencode.ai/inference/openai/v1",
    keys: ["OPENCODE_API_KEY"]
  }),
  vercel: over(service, {
    name: "Vercel AI Gateway",
    baseUrl: "https://ai-gateway.vercel.sh/v1",
    keys: ["AI_GATEWAY_API_KEY"]
  }),
  xiaomi: over(service, { name: "Xiaomi MiMo", baseUrl: "https://api.xiaomimimo.com/v1", keys: ["XIAOMI_API_KEY"] }),
  meta: over(openai, { name: "Meta", baseUrl: "https://api.meta.ai/v1", keys: ["META_API_KEY"] }),
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
  [/claude/i, { cacheMarks: true, callIds: claudeIds, answersResults: false }]
]

const defaults: Readonly<Record<Api, Profile>> = { anthropic, openai, "openai-compatible": compatible, gemini }

const hostOf = (baseUrl: string | undefined): string =>
  baseUrl !== undefined && URL.canParse(baseUrl) ? new URL(baseUrl).host : ""

/** Whether the host, or a domain that it belongs to, fits the pattern, in which `*` is any one label. */
const fits = (host: string, pattern: string): boolean => {
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
  const called = (name: string | undefined) =>
    name !== undefined && Object.hasOwn(profiles, name) && profiles[name]?.api === asked.api
      ? profiles[name]
      : undefined
  const found =
    called(asked.like) ??
    Object.values(profiles).find(({ api, hosts }) => api === asked.api && hosts.some((one) => fits(host, one))) ??
    called(asked.providerID) ??
    defaults[asked.api]
  const rules = found.anyModel ? families.filter(([pattern]) => pattern.test(asked.model)) : []
  const profile = rules.reduce<Profile>((under, [, fields]) => ({ ...under, ...fields }), found)
  return { ...profile, ...asked.fields }
}
