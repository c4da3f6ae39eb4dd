/**
 * What a protocol is to the rest: a writer of requests and a reader of answers. Writers are strict and pure; readers skip what they
 * do not know. Spec: MD-80..MD-96 in specs/models.md.
 */
import type * as Prompt from "@effect/ai/Prompt"
import type { RequestSettings } from "@daybook/core/domain/Agent"
import type { Profile } from "../Profiles.ts"
import type { Answer } from "./Answer.ts"
import type { Answers } from "./History.ts"
import type { Json } from "./Json.ts"

/** A tool as it is offered: the runtime's with a JSON schema, or one that the provider runs. */
export type WireTool =
  | { readonly _tag: "Local"; readonly name: string; readonly description: string | undefined; readonly schema: Json }
  | { readonly _tag: "Hosted"; readonly id: string; readonly name: string; readonly args: Json }

/** A model at a server, and how it is asked. */
export interface Asked {
  readonly model: string
  readonly profile: Profile
  /** The output limit of one answer; 0 when unknown. */
  readonly outputTokens: number
  /** Whether the model takes levels of effort. */
  readonly thinks: boolean
  readonly settings: RequestSettings
}

/** One request, in no protocol's form. */
export interface WireRequest extends Asked {
  /** The conversation in a form that the profile accepts (`History.ts`). */
  readonly messages: ReadonlyArray<Prompt.Message>
  readonly tools: ReadonlyArray<WireTool>
  readonly toolChoice: "auto" | "none" | "required" | { readonly tool: string }
  /** The schema of an answer that must be JSON. */
  readonly format: { readonly name: string; readonly schema: Json } | undefined
}

/** Reads one event of an answer, or a whole answer. `name` is that of the server-sent event, if it has one. */
export type Reader = (event: Json, name: string) => void

export interface Protocol extends Answers {
  /** Where requests go, below the base address. */
  readonly path: (request: WireRequest) => string
  /** The headers of a request with this body, besides those of `signIn`. */
  readonly headers?: (body: Json) => Readonly<Record<string, string>>
  readonly write: (request: WireRequest) => Json
  /** Completes the body after the settings' own JSON fields were merged into it. */
  readonly finish?: (body: Json, settings: RequestSettings) => Json
  /** The fields that tell an answer that came whole from other JSON. */
  readonly whole: ReadonlyArray<string>
  readonly read: (answer: Answer, request: WireRequest) => Reader
}

export const limitOf = ({ outputTokens, settings }: WireRequest): number | undefined =>
  settings.maxOutputTokens ?? (outputTokens === 0 ? undefined : outputTokens)

const keyHeaders = { anthropic: "x-api-key", gemini: "x-goog-api-key" } as const

/** The headers that every request to a server needs, with its key. */
export const signIn = (
  { api, keyHeader }: Pick<Profile, "api" | "keyHeader">,
  key = ""
): Readonly<Record<string, string>> => ({
  ...(api === "anthropic" ? { "anthropic-version": "2023-06-01" } : {}),
  ...(key === ""
    ? {}
    : keyHeader === "own" && (api === "anthropic" || api === "gemini")
      ? { [keyHeaders[api]]: key }
      : { authorization: `Bearer ${key}` })
})

// --- addresses

/** Ends of addresses that were copied with the path of a request. */
const pasted = /\/+(?:chat\/completions|completions|responses|messages|models(?:\/.*)?)?\/*$/

const pathOf = (address: string | undefined): string =>
  address !== undefined && URL.canParse(address) ? new URL(address).pathname.replace(/\/+$/, "") : ""

/**
 * The base of requests: without blanks and the path of a request. An address without a path gets the one that is usual for its
 * server; Anthropic's is usually given without the version. Spec: MD-145.
 */
export const baseOf = ({ api, baseUrl: usual }: Pick<Profile, "api" | "baseUrl">, given: string): string => {
  const [address = "", ...query] = given.trim().replace(/#.*$/, "").split("?")
  const base = address.replace(pasted, "").replace(/\/+$/, "")
  const path = api === "anthropic" ? (base.endsWith("/v1") ? "" : "/v1") : pathOf(base) === "" ? pathOf(usual) : ""
  return [`${base}${path}`, ...query].join("?")
}

/** The address of a request; the query of the base stays at the end: `?api-version=`. */
export const endpoint = (base: string, path: string): string => {
  const [address = "", ...ofBase] = base.split("?")
  const [tail = "", ...ofPath] = path.split("?")
  const query = [...ofBase, ...ofPath].filter((one) => one !== "").join("&")
  return `${address}/${tail}${query === "" ? "" : `?${query}`}`
}
