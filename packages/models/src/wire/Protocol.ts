/**
 * What a protocol is to the rest: a writer of requests and a reader of answers. Writers are strict and pure; readers skip what they
 * do not know. Spec: MD-80..MD-96 in specs/models.md.
 */
import type * as Prompt from "@effect/ai/Prompt"
import type { RequestSettings } from "@daybook/core/domain/Agent"
import type { Profile } from "../Profile.ts"
import type { Answer } from "./Answer.ts"
import type { Answers } from "./History.ts"
import type { Json } from "./Json.ts"

/** A tool as it is offered: the runtime's with a JSON schema, or one that the provider runs. */
export type WireTool =
  | { readonly _tag: "Local"; readonly name: string; readonly description: string | undefined; readonly schema: Json }
  | { readonly _tag: "Hosted"; readonly id: string; readonly name: string; readonly args: Json }

/** One request, in no protocol's form. */
export interface WireRequest {
  readonly model: string
  readonly profile: Profile
  /** The output limit of one answer; 0 when unknown. */
  readonly outputTokens: number
  /** Whether the model takes levels of effort. */
  readonly thinks: boolean
  /** The conversation in a form that the profile accepts (`History.ts`). */
  readonly messages: ReadonlyArray<Prompt.Message>
  readonly tools: ReadonlyArray<WireTool>
  readonly toolChoice: "auto" | "none" | "required" | { readonly tool: string }
  /** The schema of an answer that must be JSON. */
  readonly format: { readonly name: string; readonly schema: Json } | undefined
  readonly settings: RequestSettings
}

/** Reads one answer. */
export interface Reader {
  /** Takes one event. `name` is the name of the server-sent event, if it has one. */
  readonly event: (event: Json, name: string) => void
  /** Takes an answer that came whole, as one JSON object; false if it is none. */
  readonly whole: (body: Json) => boolean
  /** Gives what it held back: nothing follows. */
  readonly end?: () => void
}

export interface Protocol extends Answers {
  /** Where requests go, below the base address. */
  readonly path: (request: WireRequest) => string
  /** The headers of a request with this key; `body` is the body as sent. */
  readonly headers: (key: string | undefined, body: Json, request: WireRequest) => Readonly<Record<string, string>>
  readonly write: (request: WireRequest) => Json
  /** Completes the body after the settings' own JSON fields were merged into it. */
  readonly finish?: (body: Json, settings: RequestSettings) => Json
  readonly read: (answer: Answer, request: WireRequest) => Reader
}
