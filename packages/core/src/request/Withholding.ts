/**
 * Decides which parts of messages a model is not shown, and the sentence in place of each: media that it does not take, parts
 * that its server refused, and the oldest of too many media. Pure and deterministic. `Repair.ts` finds refused parts.
 * Spec: RQ-640..RQ-643.
 */
import type * as Prompt from "@effect/ai/Prompt"
import { Struct } from "effect"
import type { Message, UserMessage, Withheld } from "@daybook/log/domain/Message"
import type { ModelRef } from "@daybook/log/domain/Values"
import { mediaKind, type Instead, type MediaKind, nothingInstead, textPart } from "../prompt/FilePart.ts"

const nouns = { image: "picture", pdf: "PDF document" } as const

const quoted = (name: string | undefined): string =>
  name === undefined ? "" : ` ${JSON.stringify(name.length > 200 ? `${name.slice(0, 200)}...` : name)}`

const sentence = (kind: MediaKind, name: string | undefined, reason: string): string =>
  `[The ${nouns[kind]}${quoted(name)} is not shown: ${reason}]`

const advice = {
  image: "Work from the text around it, or say that you cannot see it.",
  pdf: "A tool may extract its text; else say that you cannot read it."
} as const

const notTaken = {
  image: `this model reads no pictures. ${advice.image}`,
  pdf: `this model reads no PDF documents. ${advice.pdf}`
} as const

/** Does not quote the server's error, which may repeat the refused content. */
const refused = {
  image: `the model's server refused it. ${advice.image}`,
  pdf: `the model's server refused it. ${advice.pdf}`
} as const

const refusedText =
  "[This text is not shown: the model's server refused it. Go on without it, or say that it is missing.]"

const refusedCall =
  "[The input and the result of this call are not shown: the model's server refused them. Do not repeat the call.]"

/** The model of a request, and the media that it takes. */
export interface Withholding {
  readonly model: ModelRef
  /** The media that the model takes; undefined when unknown. */
  readonly media?: ReadonlyArray<MediaKind> | undefined
}

const isFor =
  ({ id, providerID }: ModelRef) =>
  ({ model }: Withheld): boolean =>
    model.id === id && model.providerID === providerID

export const withheldFrom = ({ withheld = [] }: Message, model: ModelRef): ReadonlyArray<Withheld> =>
  withheld.length === 0 ? withheld : withheld.filter(isFor(model))

/** Whether the model's server refused the thinking of the answer. */
export const isThinkingWithheld = (message: Message, model: ModelRef): boolean =>
  withheldFrom(message, model).some(({ kind }) => kind === "thinking")

/** The replacement for the parts of a message, or for the result of one of its calls. */
export const insteadOf = (message: Message, { media, model }: Withholding, callID?: string): Instead => {
  if (message.withheld === undefined && media === undefined) return nothingInstead
  const withheld = withheldFrom(message, model).filter((part) => part.callID === callID)
  const isWithheld = (at: number | undefined): boolean =>
    withheld.some(({ index, kind }) => index === at && kind !== "input" && kind !== "thinking")
  const input = withheld.some(({ kind }) => kind === "input")
  return {
    whole: input ? refusedCall : isWithheld(undefined) ? refusedText : undefined,
    input,
    text: (index) => (isWithheld(index) ? refusedText : undefined),
    medium: (index, kind, name) =>
      media !== undefined && !media.includes(kind)
        ? sentence(kind, name, notTaken[kind])
        : isWithheld(index)
          ? sentence(kind, name, refused[kind])
          : undefined
  }
}

/** The prompt with sentences in place of the attached texts that were refused. */
const withoutAttached = (message: UserMessage, withheld: ReadonlyArray<Withheld>): UserMessage => {
  const { expansion } = message
  const refused = new Set(
    withheld.flatMap(({ index, kind }) => (kind === "text" && index !== undefined ? [index] : []))
  )
  if (expansion === undefined || refused.size === 0) return message
  const parts = expansion.parts.map((part, at) =>
    refused.has(at) ? { ...part, content: { type: "text" as const, text: refusedText } } : part
  )
  return { ...message, expansion: { ...expansion, parts } }
}

const withSentences = (message: Message, withheld: ReadonlyArray<Withheld>): Message => {
  const isRefused = (callID?: string, kind = "text") =>
    withheld.some((part) => part.kind === kind && part.callID === callID && part.index === undefined)
  switch (message.type) {
    case "user":
      return isRefused()
        ? { ...Struct.omit(message, "expansion"), text: refusedText }
        : withoutAttached(message, withheld)
    case "shell":
      return isRefused() ? { ...message, command: refusedText, output: "" } : message
    case "assistant":
      return {
        ...message,
        content: message.content.map((part) =>
          part.type === "tool" && (isRefused(part.id) || isRefused(part.id, "input"))
            ? {
                ...Struct.omit(part, "structured"),
                ...(isRefused(part.id, "input") ? { input: {}, raw: "" } : {}),
                content: [{ type: "text" as const, text: refusedText }],
                ...(part.error === undefined ? {} : { error: { ...part.error, message: refusedText } })
              }
            : part
        )
      }
    default:
      return message
  }
}

/** The messages with sentences in place of the texts that the model's server refused, for its summary of them. */
export const withoutRefused = (messages: ReadonlyArray<Message>, model: ModelRef): ReadonlyArray<Message> =>
  messages.map((message) => {
    const withheld = withheldFrom(message, model)
    return withheld.length === 0 ? message : withSentences(message, withheld)
  })

/** Media in one request when the model does not say how many. */
export const defaultPictures = 100

const isMedium = (part: Prompt.UserMessagePartEncoded): part is Prompt.FilePartEncoded =>
  part.type === "file" && mediaKind(part.mediaType) !== undefined

const countIn = (message: Prompt.MessageEncoded): number =>
  message.role === "user" && typeof message.content !== "string" ? message.content.filter(isMedium).length : 0

const older = (limit: number): string => `a request shows the newest ${limit} pictures and documents only.`

/** The same message and count return the same object, on which later steps rely. */
const reduced = new WeakMap<
  Prompt.MessageEncoded,
  { readonly hidden: number; readonly limit: number; readonly made: Prompt.MessageEncoded }
>()

/** The message without its first `hidden` media. */
const without = (message: Prompt.MessageEncoded, hidden: number, limit: number): Prompt.MessageEncoded => {
  if (hidden === 0 || message.role !== "user" || typeof message.content === "string") return message
  const before = reduced.get(message)
  if (before?.hidden === hidden && before.limit === limit) return before.made
  let left = hidden
  const content = message.content.map((part) => {
    if (!isMedium(part) || left === 0) return part
    left -= 1
    return textPart(sentence(mediaKind(part.mediaType) ?? "image", part.fileName, older(limit)))
  })
  const made: Prompt.MessageEncoded = { ...message, content }
  reduced.set(message, { hidden, limit, made })
  return made
}

/**
 * Hides the oldest media beyond the limit. They go in blocks of a fifth of the limit, so that a further picture seldom changes
 * the beginning of the request, which providers cache.
 */
export const withinPictures = (groups: ReadonlyArray<ReadonlyArray<Prompt.MessageEncoded>>, limit: number) => {
  const total = groups.reduce((all, messages) => all + messages.reduce((sum, one) => sum + countIn(one), 0), 0)
  if (total <= limit) return groups
  const block = Math.max(1, Math.floor(limit / 5))
  let left = Math.min(total, Math.ceil((total - limit) / block) * block)
  return groups.map((messages) =>
    left === 0
      ? messages
      : messages.map((message) => {
          const hidden = Math.min(left, countIn(message))
          left -= hidden
          return without(message, hidden, limit)
        })
  )
}
