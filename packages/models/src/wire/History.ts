/**
 * Makes any conversation valid for a server, by its profile: attachments in a form that it reads; call ids in its alphabet and
 * length, each used once; tool names as offered; results of foreign hosted tools as text; system messages, neighbours of one role
 * and tool results where its chat template wants them. A message's form depends on earlier messages only, so that these keep their
 * bytes. Pure. Spec: MD-11, MD-12, MD-24, MD-54, MD-58, MD-59, MD-61, MD-81..MD-84 in specs/models.md.
 */
import { createHash } from "node:crypto"
import * as Prompt from "@effect/ai/Prompt"
import { Predicate } from "effect"
import { mediaMime } from "@daybook/core/prompt/FilePart"
import type { Profile } from "../Profiles.ts"
import { type Json, record } from "./Json.ts"
import { freeName, type WireNames } from "./Names.ts"

type Message = Prompt.Message
type Content = Prompt.AssistantMessage["content"]

/** What a protocol itself decides about an answer's parts. */
export interface Answers {
  /** Whether the server takes back this call of a hosted tool, with its result. By default it does not. */
  readonly takesHosted?: (call: Prompt.ToolCallPart, result: Prompt.ToolResultPart) => boolean
  /** The answer's parts as the protocol takes them back: reasoning that it does not accept is left out. Called in order. */
  readonly makeLower?: (profile: Profile) => (content: Content) => Content
}

/** The metadata that a reader noted on a part. */
export const notedOn = (part: { readonly options: unknown } | undefined, name: string): Json =>
  record(record(part?.options)[name])

export const conversation = (
  prompt: Prompt.Prompt,
  profile: Profile,
  names: WireNames,
  { makeLower, takesHosted = () => false }: Answers
): ReadonlyArray<Message> => {
  const lower = makeLower?.(profile) ?? ((content) => content)
  const idOf = makeIds(profile.callIds)
  const renamed = <P extends CallPart>(part: P): P => ({
    ...part,
    id: idOf(part),
    name: part.providerExecuted ? part.name : names.toWire(part.name)
  })
  const messages = prompt.content.flatMap((message): ReadonlyArray<Message> => {
    switch (message.role) {
      case "system":
        return [message]
      case "user":
        return [{ ...message, content: message.content.map((part) => plainPart(part, profile)) }]
      case "tool":
        return [{ ...message, content: message.content.map(renamed) }]
      case "assistant": {
        const called = message.content.map((part) => (isCallPart(part) ? renamed(part) : part))
        const content = lower(hostedAsText(called, takesHosted))
        return content.length === 0 ? [] : [{ ...message, content }]
      }
    }
  })
  return arranged(messages, profile)
}

// --- attachments

const plainPart = (part: Prompt.UserMessagePart, { media }: Profile): Prompt.UserMessagePart => {
  if (part.type !== "file") return part
  const data = bytesOf(part.data)
  const name = part.fileName ?? "attachment"
  if (data instanceof Uint8Array && isText(part.mediaType)) {
    return Prompt.textPart({ text: `<file name="${name}">\n${new TextDecoder().decode(data)}\n</file>` })
  }
  const mediaType = shownMedia(part.mediaType, data)
  if (mediaType !== undefined && media.includes(mediaType === "application/pdf" ? "pdf" : "image")) {
    return { ...part, mediaType, data }
  }
  return Prompt.textPart({ text: `[The file "${name}" of type ${part.mediaType} cannot be shown to this model.]` })
}

/** The media type to send: detected from the bytes, because providers reject a picture with the wrong type. */
const shownMedia = (mediaType: string, data: Uint8Array | URL): string | undefined =>
  data instanceof Uint8Array ? mediaMime(data) : /^image\/|^application\/pdf$/.test(mediaType) ? mediaType : undefined

const isText = (mediaType: string): boolean =>
  /^text\/|^application\/(?:json|xml|x-sh|javascript|typescript|yaml|x-yaml|toml)|\+(?:json|xml)(?:$|;)/.test(mediaType)

const bytesOf = (data: string | Uint8Array | URL): Uint8Array | URL => {
  if (data instanceof Uint8Array) return data
  const text = String(data)
  const [head, isBase64] = /^data:[^,]*?(;base64)?,/i.exec(text) ?? []
  const isAddress = data instanceof URL || (/^https?:\/\//.test(text) && URL.canParse(text))
  if (head === undefined && isAddress) return new URL(text)
  const payload = text.slice(head?.length ?? 0)
  return head === undefined || isBase64 !== undefined
    ? new Uint8Array(Buffer.from(payload, "base64"))
    : new TextEncoder().encode(decodeURIComponent(payload))
}

/** A file's bytes in base64; undefined for an address. */
export const base64Of = ({ data }: Prompt.FilePart): string | undefined =>
  data instanceof Uint8Array ? Buffer.from(data).toString("base64") : undefined

/** A file's bytes as a data URL; an address as it is. */
export const urlOf = (part: Prompt.FilePart): string => {
  const data = base64Of(part)
  return data === undefined ? String(part.data) : `data:${part.mediaType};base64,${data}`
}

// --- calls

type CallIds = Profile["callIds"]

type CallPart = Prompt.ToolCallPart | Prompt.ToolResultPart

const isCallPart = (part: Prompt.AssistantMessagePart): part is CallPart =>
  part.type === "tool-call" || part.type === "tool-result"

const refused = { word: /[^a-zA-Z0-9_-]/g, printable: /[^\x21-\x7e]/g } as const

const digest = (id: string, length: number): string =>
  BigInt(`0x${createHash("sha256").update(id).digest("hex")}`)
    .toString(36)
    .slice(-length)

const makeIds = ({ exact, length, set }: CallIds) => {
  const used = new Set<string>()
  /** The next number to try per id, so that many calls with one id take linear time. */
  const next = new Map<string, number>()
  const waiting = new Map<string, Array<string>>()
  const fits = (id: string): boolean => id.length === length && /^[a-zA-Z0-9]+$/.test(id)
  const plain = (id: string): string =>
    exact ? (fits(id) ? id : digest(id, length)) : id.replaceAll(refused[set], "_").slice(0, length) || "call"
  const free = (base: string): string => {
    const from = next.get(base) ?? 2
    if (!used.has(base)) return base
    next.set(base, from + 1)
    const id = exact ? digest(`${base} ${from}`, length) : freeName(base, length, (name) => used.has(name), from)
    return used.has(id) ? free(base) : id
  }
  return (part: CallPart): string => {
    if (part.type === "tool-result") return waiting.get(part.id)?.shift() ?? plain(part.id)
    const id = free(plain(part.id))
    used.add(id)
    waiting.set(part.id, [...(waiting.get(part.id) ?? []), id])
    return id
  }
}

/** The thinking to send where it is required and absent. Servers reject an empty one, and models repeat one that never changes. */
export const substitute = (calls: ReadonlyArray<Prompt.ToolCallPart>): string =>
  calls.length === 0 ? " " : `I call ${[...new Set(calls.map(({ name }) => name))].join(", ")}.`

const resultChars = 2_000

export const resultInWords = ({ name, result }: Prompt.ToolResultPart): Prompt.TextPart => {
  const json = Predicate.isNullable(result) ? "no result" : (JSON.stringify(result) ?? "no result")
  return Prompt.textPart({ text: `[${name}: ${json.slice(0, resultChars)}]` })
}

/** Converts results of hosted tools to text if the server does not accept them back. */
const hostedAsText = (content: Content, takes: NonNullable<Answers["takesHosted"]>): Content => {
  const results = new Map(content.flatMap((part) => (part.type === "tool-result" ? [[part.id, part] as const] : [])))
  const kept = new Set<unknown>()
  for (const part of content) {
    const result = part.type === "tool-call" && part.providerExecuted ? results.get(part.id) : undefined
    if (result !== undefined && part.type === "tool-call" && takes(part, result)) kept.add(part).add(result)
  }
  return content.flatMap((part) => {
    if (kept.has(part)) return [part]
    if (part.type === "tool-result") return [resultInWords(part)]
    return part.type === "tool-call" && part.providerExecuted ? [] : [part]
  })
}

export const resultText = ({ result }: Prompt.ToolResultPart): string =>
  Predicate.isString(result) ? result : JSON.stringify(result ?? null)

// --- roles

const updated = (text: string): Message =>
  Prompt.userMessage({ content: [Prompt.textPart({ text: `<system-update>\n${text}\n</system-update>` })] })

/** The answer between a tool's result and a user message, for templates that want one. */
const gap = Prompt.assistantMessage({ content: [Prompt.textPart({ text: "I have read the result." })] })

const arranged = (messages: ReadonlyArray<Message>, profile: Profile): ReadonlyArray<Message> => {
  const head = messages.findIndex(({ role }) => role !== "system")
  const all = messages.flatMap((given, index) => {
    const isLate = given.role === "system" && head >= 0 && index > head && profile.system !== "anywhere"
    const message = isLate ? updated(given.content) : given
    return profile.answersResults && messages[index - 1]?.role === "tool" && message.role === "user"
      ? [gap, message]
      : [message]
  })
  return joined(all, (a, b) => join(a, b, profile))
}

/** The list with neighbours as one, where `join` makes one of them. */
export const joined = <A>(all: ReadonlyArray<A>, join: (a: A, b: A) => A | undefined): ReadonlyArray<A> => {
  const made: Array<A> = []
  for (const one of all) {
    const last = made.at(-1)
    const both = last === undefined ? undefined : join(last, one)
    if (both === undefined) made.push(one)
    else made.splice(-1, 1, both)
  }
  return made
}

/** Two neighbours of one role as one message, where the server wants it. */
const join = (a: Message, b: Message, { alternates, system }: Profile): Message | undefined => {
  if (a.role === "system" && b.role === "system") {
    return system === "one" ? { ...a, content: `${a.content}\n\n${b.content}` } : undefined
  }
  if (!alternates) return undefined
  if (a.role === "user" && b.role === "user") return { ...a, content: [...a.content, ...b.content] }
  if (a.role === "assistant" && b.role === "assistant") return { ...a, content: [...a.content, ...b.content] }
  return undefined
}
