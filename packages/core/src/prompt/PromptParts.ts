/**
 * Renders a stored prompt for the model: its text, then each part of its expansion in a labelled element. Pure: the same
 * prompt always yields the same bytes. Spec: PX-19, PX-27, PX-28.
 */
import { Either } from "effect"
import { attachmentIndex, dataBytes } from "@daybook/log/domain/DataUri"
import type { ExpandedPart, FileAttachment, Prompt } from "@daybook/log/domain/Values"
import { isBlank } from "@daybook/log/support/Text"
import { filePart, type Instead, mediaKind, nothingInstead, textPart, type UserPart } from "./FilePart.ts"

// Escapes the tags in which the runtime speaks to the model, so that text of files, tools, servers and processes
// cannot imitate them: the `<` of such a tag becomes `&lt;`. Pure. Spec: LM-30.

const names = ["system-update", "running-task", "conversation-checkpoint", "recent-context", "branch-summary"]

/** Matches despite invisible characters within a name and a few characters before it. */
const hidden = String.raw`\p{Cf}{0,2}`
const spelled = names.map((name) => name.split("").join(hidden)).join("|")
let tag: RegExp | undefined

/** Compiled on first use, because it takes longer than the start of a reading verb may. */
const tagPattern = () => (tag ??= new RegExp(String.raw`<(?=[\s\p{Cf}]{0,4}/?[\s\p{Cf}]{0,4}(?:${spelled}))`, "giu"))

export const unprivileged = (text: string) => (text.includes("<") ? text.replaceAll(tagPattern(), "&lt;") : text)

/** Escapes a value for an attribute: it cannot end the attribute or the line. */
const attribute = (value: string): string =>
  value.replaceAll(/["&<>\p{Cc}]/gu, (character) => `&#${character.codePointAt(0) ?? 0};`)

/** Wraps content in a tag, unchanged except that a closing tag is escaped. */
const tagged = (tag: string, attributes: ReadonlyArray<readonly [string, string]>, content: string): string => {
  const head = [tag, ...attributes.map(([name, value]) => `${name}="${attribute(value)}"`)].join(" ")
  const body = unprivileged(content).replaceAll(new RegExp(`<(?=/${tag}[\\s>])`, "gi"), "&lt;")
  return `<${head}>\n${body}${body.endsWith("\n") ? "" : "\n"}</${tag}>`
}

const withLines = /^(.*)#L(\d+)-(\d+)$/s

/** The body of a data URI as base64, whatever its encoding. */
const base64Of = (uri: string): string =>
  Either.match(dataBytes(uri), { onLeft: () => "", onRight: (bytes) => Buffer.from(bytes).toString("base64") })

/** A provider's picture part has no name, so the name precedes it as text. */
const named = (name: string, mime: string, note?: string): UserPart =>
  textPart(
    `<media name="${attribute(name)}" type="${attribute(mime)}"${note === undefined ? "" : ` note="${attribute(note)}"`}/>`
  )

/** The file after its name, or the sentence in its place. */
const shownFile = (
  file: Pick<FileAttachment, "uri" | "mime" | "name">,
  name: UserPart | undefined,
  at: number,
  instead: Instead
): ReadonlyArray<UserPart> => {
  const part = filePart(file)
  const kind = part.type === "file" ? mediaKind(part.mediaType) : undefined
  const sentence = kind === undefined ? undefined : instead.medium(at, kind, file.name)
  if (sentence !== undefined) return [textPart(sentence)]
  return name === undefined ? [part] : [name, part]
}

const mediaParts = (
  { files = [] }: Prompt,
  { name, note }: ExpandedPart,
  content: Extract<ExpandedPart["content"], { type: "file" }>,
  at: number,
  instead: Instead
): ReadonlyArray<UserPart> => {
  const index = attachmentIndex(content.uri)
  const body = index === undefined ? undefined : base64Of(files[index]?.uri ?? "")
  const uri = body === undefined ? content.uri : `data:${content.mime};base64,${body}`
  return shownFile({ ...content, uri }, named(name, content.mime, note), at, instead)
}

/** An attachment without an expansion. */
export const givenParts = (file: Pick<FileAttachment, "uri" | "mime" | "name">, at = 0, instead = nothingInstead) => {
  const name = file.name === undefined || filePart(file).type !== "file" ? undefined : named(file.name, file.mime)
  return shownFile(file, name, at, instead)
}

const partsOf = (prompt: Prompt, part: ExpandedPart, at: number, instead: Instead): ReadonlyArray<UserPart> => {
  const { content, kind, name, source } = part
  if (content.type === "file") return mediaParts(prompt, part, content, at, instead)
  const sentence = instead.text(at)
  if (sentence !== undefined) return [textPart(sentence)]
  const element = (tag: string, attributes: ReadonlyArray<readonly [string, string]>) => [
    textPart(tagged(tag, attributes, content.text))
  ]
  switch (kind) {
    case "file":
    case "media": {
      const [, path, from, to] = withLines.exec(name) ?? []
      return path === undefined
        ? element("file", [["path", name]])
        : element("file", [
            ["path", path],
            ["lines", `${from}-${to}`]
          ])
    }
    case "directory":
      return element("directory", [["path", name]])
    case "failure":
      return element("unresolved", [["mention", source?.text ?? name]])
    case "agent":
    case "reference":
    case "resource":
    case "template":
      return element(kind, [["name", name]])
  }
}

/** The text for an empty prompt in an old log; new ones are rejected (IB-31). */
const nothingSaid = textPart("[The message is empty.]")

/** The parts of a user message, none blank: providers reject those. Without an expansion, files go as given. */
export const expandedParts = (prompt: Prompt, instead = nothingInstead): ReadonlyArray<UserPart> => {
  const { expansion, files = [] } = prompt
  const text = instead.whole ?? expansion?.text ?? prompt.text
  const parts =
    expansion === undefined
      ? files.flatMap((file, at) => givenParts(file, at, instead))
      : expansion.parts.flatMap((part, at) => partsOf(prompt, part, at, instead))
  if (isBlank(text)) return parts.length > 0 ? parts : [nothingSaid]
  return [textPart(text), ...parts]
}
