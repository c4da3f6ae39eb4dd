/**
 * The `fetch` of provider requests: without undici's five-minute limits, because the runtime's policy sets them, and through the
 * proxy that `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` name. Spec: MD-97 in specs/models.md.
 */
import { Agent, EnvHttpProxyAgent, fetch } from "@effect/platform-node/Undici"
import { defined } from "./Json.ts"

const limits = { headersTimeout: 0, bodyTimeout: 0, connect: { timeout: 30_000 } } as const

const variable = (name: string): string | undefined => {
  const value = process.env[name.toLowerCase()] ?? process.env[name]
  return value === undefined || value.trim() === "" ? undefined : value.trim()
}

const dispatcherOf = () => {
  const all = variable("ALL_PROXY")
  const httpProxy = variable("HTTP_PROXY") ?? all
  const httpsProxy = variable("HTTPS_PROXY") ?? all
  if (httpProxy === undefined && httpsProxy === undefined) return new Agent(limits)
  return new EnvHttpProxyAgent({ ...limits, ...defined({ httpProxy, httpsProxy }) })
}

let shared: typeof globalThis.fetch | undefined

/** One `fetch` for requests without a client of their own. */
export const sharedFetch = (): typeof globalThis.fetch => (shared ??= patientFetch())

export const patientFetch = (): typeof globalThis.fetch => {
  const dispatcher = dispatcherOf()
  const patient = (input: string, init: object) => fetch(input, { ...init, dispatcher })
  // undici's Request and Response types differ from the global ones in name only.
  return patient as unknown as typeof globalThis.fetch
}
