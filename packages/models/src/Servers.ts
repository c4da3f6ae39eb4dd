/**
 * What the table of profiles says about servers by name: those for which a key is enough, and what to set.
 * Spec: MD-4, MD-36, MD-722.
 */
import { hostOf, type Profile, profiles } from "./Profiles.ts"

/** A server for which a key is enough, with its default model. `provider` is its name in model references. */
export interface Server extends Pick<Profile, "name" | "api" | "keys"> {
  readonly provider: string
  readonly baseUrl: string
  readonly model: string
}

export const knownAs = (provider: string): Profile | undefined =>
  Object.hasOwn(profiles, provider) ? profiles[provider] : undefined

/** The servers in the order in which a default model is chosen. */
export const servers: ReadonlyArray<Server> = Object.entries(profiles).flatMap(
  ([provider, { api, baseUrl, keys, model, name }]) =>
    baseUrl === undefined || model === undefined ? [] : [{ provider, name, api, baseUrl, keys, model }]
)

export const knownNames: ReadonlyArray<string> = Object.keys(profiles).sort()

export const serverOf = (provider: string): Server | undefined => servers.find((one) => one.provider === provider)

export const catalogueName = (provider: string, baseUrl: string | undefined): string => {
  if (baseUrl === undefined || serverOf(provider) !== undefined) return provider
  return servers.find((one) => hostOf(one.baseUrl) === hostOf(baseUrl))?.provider ?? provider
}

const variables = [...new Set(servers.flatMap(({ keys }) => keys.slice(0, 1)))]

/** What to set to use a model: the usual variable of each server, or the address of one's own. */
export const howToConfigure = `set ${variables.join(", ")} or DAYBOOK_BASE_URL`
