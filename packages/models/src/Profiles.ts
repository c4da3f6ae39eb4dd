/**
 * The known servers and model families: one row each. Sources are the servers' public documentation and the texts of their errors.
 * Spec: MD-80..MD-89 in specs/models.md.
 */
import type { Api, Profile } from "./Profile.ts"

const anthropic: Profile = {
  name: "Anthropic",
  api: "anthropic",
  baseUrl: "https://api.anthropic.com/v1",
  keys: ["ANTHROPIC_API_KEY"],
  hosts: ["api.anthropic.com"],
  system: "leading",
  systemRole: "system",
  alternates: true,
  answersResults: false,
  callIds: { set: "word", length: 64, exact: false },
  thinking: { field: "thinking", back: "always", required: false },
  effort: "none",
  media: ["image", "pdf"],
  pictures: 100,
  maxTokens: "max_tokens",
  keyHeader: "own",
  cacheMarks: true,
  streamOptions: false,
  toolChoice: true,
  listing: "models"
}

const openai: Profile = {
  ...anthropic,
  name: "OpenAI",
  api: "openai",
  baseUrl: "https://api.openai.com/v1",
  keys: ["OPENAI_API_KEY"],
  hosts: ["api.openai.com"],
  system: "anywhere",
  systemRole: "developer",
  alternates: false,
  callIds: { set: "printable", length: 64, exact: false },
  effort: "reasoning.effort",
  maxTokens: "max_completion_tokens",
  cacheMarks: false
}

/** A server of which nothing is known: only what every chat template takes. */
const compatible: Profile = {
  ...openai,
  name: "OpenAI-compatible server",
  api: "openai-compatible",
  keys: ["DAYBOOK_API_KEY"],
  hosts: [],
  system: "one",
  systemRole: "system",
  alternates: true,
  answersResults: true,
  // OpenAI's service accepts ids of at most 40 characters.
  callIds: { set: "printable", length: 40, exact: false },
  thinking: { field: "reasoning_content", back: "calls", required: false },
  effort: "reasoning_effort",
  maxTokens: "max_tokens",
  streamOptions: true
}
delete (compatible as { baseUrl?: string }).baseUrl

const gemini: Profile = {
  ...openai,
  name: "Google Gemini",
  api: "gemini",
  baseUrl: "https://generativelanguage.googleapis.com/v1beta",
  keys: ["GEMINI_API_KEY", "GOOGLE_API_KEY"],
  hosts: ["generativelanguage.googleapis.com"],
  system: "leading",
  alternates: true
}

/** The profiles by provider name. */
export const profiles: Readonly<Record<string, Profile>> = {
  anthropic,
  openai,
  "openai-compatible": compatible,
  google: gemini,
  deepseek: {
    ...compatible,
    name: "DeepSeek",
    baseUrl: "https://api.deepseek.com/v1",
    keys: ["DEEPSEEK_API_KEY"],
    hosts: ["api.deepseek.com"],
    media: [],
    thinking: { field: "reasoning_content", back: "calls", required: true }
  },
  mistral: {
    ...compatible,
    name: "Mistral",
    baseUrl: "https://api.mistral.ai/v1",
    keys: ["MISTRAL_API_KEY"],
    hosts: ["api.mistral.ai"],
    callIds: { set: "word", length: 9, exact: true },
    thinking: { field: "reasoning_content", back: "never", required: false },
    streamOptions: false
  }
}

/** Rules of a model's chat template, on whatever server it runs. */
const families: ReadonlyArray<readonly [RegExp, Partial<Profile>]> = [
  [/deepseek/i, { thinking: { field: "reasoning_content", back: "calls", required: true } }],
  [
    /mistral|ministral|mixtral|devstral|magistral|codestral/i,
    { callIds: { set: "word", length: 9, exact: true }, answersResults: true }
  ]
]

const defaults: Readonly<Record<Api, Profile>> = { anthropic, openai, "openai-compatible": compatible, gemini }

const hostOf = (baseUrl: string | undefined): string =>
  baseUrl !== undefined && URL.canParse(baseUrl) ? new URL(baseUrl).host : ""

/** The rules of a model at a provider: of its name or address, of the model's family, and the host's own. */
export const profileOf = (asked: {
  readonly providerID: string
  readonly api: Api
  readonly baseUrl?: string | undefined
  readonly model: string
  readonly like?: string | undefined
  readonly fields?: Partial<Profile> | undefined
}): Profile => {
  const host = hostOf(asked.baseUrl)
  const named = [asked.like, asked.providerID].flatMap((name) =>
    name !== undefined && Object.hasOwn(profiles, name) ? [profiles[name]] : []
  )
  const found =
    Object.values(profiles).find(
      ({ api, hosts }) => api === asked.api && hosts.some((one) => host === one || host.endsWith(`.${one}`))
    ) ??
    named.find((profile) => profile?.api === asked.api) ??
    defaults[asked.api]
  const family = asked.api === "openai-compatible" ? families.filter(([pattern]) => pattern.test(asked.model)) : []
  return { ...found, ...Object.assign({}, ...family.map(([, fields]) => fields)), ...asked.fields }
}
