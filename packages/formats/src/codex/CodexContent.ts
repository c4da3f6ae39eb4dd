/** Converts the contents of Codex's items: prompts, answers, inputs and outputs of tools. Pure. Spec: FM-152..FM-155. */
import { Option, Predicate, Schema } from "effect"
import type { JsonRecord } from "@daybook/log/domain/Json"
import type { Content } from "../conversation/Conversation.ts"
import { isTooDeep } from "../lines/JsonLines.ts"
import { text, word } from "../reading/Tolerant.ts"
import type { Payload } from "./CodexRecord.ts"

const ContentItem = Schema.Struct({ type: word, text, image_url: text, audio_url: text })
const decodeItem = Schema.decodeUnknownOption(ContentItem)

const shownText = (text: string): Content => (text === "" ? [] : [{ type: "text", text }])

/** A data URL as media, any other URL as its text. */
const shownUrl = (url: string): Content => {
  const comma = url.indexOf(",")
  const [, mime] = /^data:([^;,]+)(?:;[^,]*)?;base64$/.exec(url.slice(0, Math.max(0, comma)).slice(0, 300)) ?? []
  return mime === undefined ? shownText(url) : [{ type: "media", mime, data: url.slice(comma + 1) }]
}

/** What an item of a content shows. An item of an unknown type is shown as its JSON. */
const shown = (given: unknown): Content => {
  if (typeof given === "string") return shownText(given)
  const item = Option.getOrUndefined(decodeItem(given))
  if (item?.text !== undefined) return shownText(item.text)
  const url = item?.image_url ?? item?.audio_url
  return url === undefined ? shownText(JSON.stringify(given) ?? "") : shownUrl(url)
}

/** Content as rollouts write it: a text, items, or nothing. */
export const contentOf = (content: unknown): Content => {
  if (content === undefined || content === null) return []
  return Array.isArray(content) ? content.flatMap(shown) : shown(content)
}

const Asked = Schema.Struct({ type: Schema.Literal("UserMessage"), content: Schema.Array(Schema.Unknown) })
const decodeAsked = Schema.decodeUnknownOption(Asked)
const isShownAsked = Schema.is(
  Schema.Union(Schema.Struct({ text: Schema.String }), Schema.Struct({ image_url: Schema.String }))
)

/** What a person said in an event: texts and pictures, without paths of files and names of skills. */
export const askedBy = ({ images, item, message, type }: Payload): Content => {
  if (type === "user_message") {
    const pictures = images?.filter(Predicate.isString).map((url) => ({ image_url: url }))
    return [...contentOf(message), ...contentOf(pictures)]
  }
  const asked = Option.getOrUndefined(decodeAsked(item))
  return contentOf(asked?.content.filter(isShownAsked))
}

/** The texts of a content. */
export const textOf = (content: Content): string =>
  content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n")

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The input of a call: its arguments as an object, or the text that they are. */
export const inputOf = (given: unknown): JsonRecord => {
  const value = typeof given === "string" ? parsed(given) : given
  // Arguments are JSON within JSON: the reader of lines has not seen how deep they are.
  if (typeof given === "string" && isTooDeep(value, given.length)) return { input: given }
  if (Predicate.isReadonlyRecord(value)) return value
  return given === undefined || given === null ? {} : { input: given }
}

const Outcome = Schema.Struct({ metadata: Schema.Struct({ exit_code: Schema.Number }) })
const isOutcome = Schema.is(Outcome)

/** The exit code that the first line of an output says, or its JSON. */
const failedText = (text: string): boolean => {
  const [, code] = /^Exit code: (-?\d{1,9})/.exec(text) ?? []
  if (code !== undefined) return Number(code) !== 0
  const outcome = text.startsWith("{") && text.length < 1_000_000 ? parsed(text) : undefined
  return isOutcome(outcome) && outcome.metadata.exit_code !== 0
}

/** The output of a call: a text, items, or in older rollouts `{ content, success }`. */
export const outputOf = (output: unknown): { readonly content: Content; readonly failed: boolean } => {
  if (Predicate.isReadonlyRecord(output) && "content" in output) {
    return { content: contentOf(output["content"]), failed: output["success"] === false }
  }
  return { content: contentOf(output), failed: typeof output === "string" && failedText(output) }
}
