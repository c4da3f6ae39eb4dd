/**
 * The model servers for which a key is enough: their variables and default models, in the order in which a default is
 * chosen. `Profiles.ts` has the rules of each server. Spec: MD-4, MD-36, MD-722.
 */
import type { Profile } from "./Profile.ts"
import { profiles } from "./Profiles.ts"
import type { Provider, WireProvider } from "./Providers.ts"

/** A server, the variables that may hold its key (the first is the usual one), and its default model. */
export interface Server extends Pick<Profile, "name" | "api" | "keys"> {
  /** The provider's name in model references. */
  readonly provider: string
  readonly baseUrl: string
  readonly model: string
}

/** Default models; makers of models come before servers of others' models. */
const models: Readonly<Record<string, string>> = {
  anthropic: "claude-sonnet-5-5",
  openai: "gpt-6.1-terra",
  google: "gemini-3.8-flash",
  deepseek: "deepseek-v4-pro",
  moonshot: "kimi-k3.1-pro",
  zai: "glm-5.3",
  dashscope: "qwen3.8-max",
  minimax: "MiniMax-M3",
  mistral: "mistral-large-latest",
  xai: "grok-4.7",
  meta: "muse-spark-1.3",
  xiaomi: "mimo-v2.6-pro",
  "kimi-coding": "kimi-for-coding",
  openrouter: "anthropic/claude-sonnet-5.5",
  vercel: "anthropic/claude-sonnet-5.5",
  opencode: "glm-5.3",
  together: "zai-org/GLM-5.3",
  fireworks: "accounts/fireworks/models/glm-5p3",
  groq: "openai/gpt-oss-120b",
  cerebras: "gpt-oss-120b",
  baseten: "zai-org/GLM-5.3",
  nvidia: "nvidia/nemotron-3-ultra-550b-a55b",
  huggingface: "zai-org/GLM-5.3"
}

const protocols: ReadonlySet<string> = new Set(["anthropic", "openai", "openai-compatible", "gemini"])

/** Whether a provider is a server, and not a model that the host made. */
export const isServer = (provider: Provider): provider is WireProvider => protocols.has(provider.api)

/** What is known about a provider's name: its protocol, and its address if all users share one. */
export const knownAs = (
  provider: string
): (Pick<Profile, "name" | "api" | "keys"> & { readonly baseUrl?: string }) | undefined =>
  Object.hasOwn(profiles, provider) ? profiles[provider] : undefined

/** The servers in the order in which a default model is chosen. */
export const servers: ReadonlyArray<Server> = Object.entries(models).flatMap(([provider, model]) => {
  const known = knownAs(provider)
  if (known?.baseUrl === undefined) return []
  const { api, baseUrl, keys, name } = known
  return [{ provider, name, api, baseUrl, keys, model }]
})

/** The names of all known servers. */
export const knownNames: ReadonlyArray<string> = Object.keys(profiles).sort()

/** The server of a provider's name. */
export const serverOf = (provider: string): Server | undefined => servers.find((one) => one.provider === provider)

const hostOf = (address: string): string => (URL.canParse(address) ? new URL(address).host : "")

/** The name under which the catalogue knows a provider: its own, or that of the server at its address. */
export const catalogueName = (provider: string, baseUrl: string | undefined): string => {
  if (baseUrl === undefined || serverOf(provider) !== undefined) return provider
  const host = hostOf(baseUrl)
  return servers.find((one) => hostOf(one.baseUrl) === host)?.provider ?? provider
}

const variables = [...new Set(servers.flatMap(({ keys }) => keys.slice(0, 1)))]

/** What to set to use a model: the usual variable of each server, or the address of one's own. */
export const howToConfigure = `set ${variables.join(", ")} or DAYBOOK_BASE_URL`
