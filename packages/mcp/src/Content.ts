/**
 * Converts a server's answers to content for the model and the log: text, media, resources and links. Total: unknown
 * content becomes JSON. Pure. Spec: MC-20..MC-22, MC-30.
 */
import { Predicate } from "effect"
import type { ToolOutput } from "@daybook/core/domain/ToolOutput"
import { isPicture } from "@daybook/core/picture/Pictures"
import type { ToolContent } from "@daybook/log/domain/Values"

/** A server's JSON object; each field is checked separately. */
type Answer = { readonly [key: string]: unknown }

const text = (value: string): ToolContent => ({ type: "text", text: value })

const string = (value: unknown): string | undefined =>
  typeof value === "string" && value.trim() !== "" ? value : undefined

const json = (value: unknown): string => JSON.stringify(value) ?? "null"

const mimeOf = (value: unknown): string => {
  const mime = string(value)?.trim() ?? ""
  return /^[\w.+-]+\/[\w.+-]+$/.test(mime) ? mime.toLowerCase() : "application/octet-stream"
}

/** Re-encodes the data: invalid base64 would fail every later request to a provider. */
const media = (data: unknown, mime: unknown, name?: string): ToolContent => {
  const body = typeof data === "string" ? Buffer.from(data, "base64").toString("base64") : ""
  if (body === "") return text(`[${name ?? mimeOf(mime)}: no data]`)
  const file = { type: "file" as const, uri: `data:${mimeOf(mime)};base64,${body}`, mime: mimeOf(mime) }
  return name === undefined ? file : { ...file, name }
}

const resource = (value: Answer): ToolContent => {
  const uri = string(value["uri"]) ?? "a resource"
  if (typeof value["text"] === "string") {
    return text(`<resource uri=${JSON.stringify(uri)}>\n${value["text"]}\n</resource>`)
  }
  return "blob" in value ? media(value["blob"], value["mimeType"], uri) : text(json(value))
}

const link = (value: Answer): ToolContent => {
  const about = [value["title"] ?? value["name"], value["mimeType"], value["description"]].flatMap(
    (each) => string(each) ?? []
  )
  return text(`[resource ${string(value["uri"]) ?? "without a URI"}${about.length > 0 ? `: ${about.join(", ")}` : ""}]`)
}

const part = (value: unknown): ToolContent => {
  if (!Predicate.isReadonlyRecord(value)) return text(json(value))
  switch (value["type"]) {
    case "text":
      return text(typeof value["text"] === "string" ? value["text"] : json(value))
    case "image":
    case "audio":
      return media(value["data"], value["mimeType"])
    case "resource":
      return Predicate.isReadonlyRecord(value["resource"]) ? resource(value["resource"]) : text(json(value))
    case "resource_link":
      return link(value)
    default:
      return text(json(value))
  }
}

const items = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])

/** Whether the text is only this value as JSON. */
const repeats = (content: ToolContent, structured: Answer): boolean => {
  if (content.type !== "text" || !content.text.trimStart().startsWith("{")) return false
  try {
    return JSON.stringify(JSON.parse(content.text)) === JSON.stringify(structured)
  } catch {
    return false
  }
}

/** A call's result, and whether it is an error. Text that only repeats the structured result is dropped. */
export const readResult = (result: Answer): { readonly output: ToolOutput; readonly isError: boolean } => {
  const content = items(result["content"]).map(part)
  const structured = Predicate.isReadonlyRecord(result["structuredContent"]) ? { ...result["structuredContent"] } : {}
  const kept = "structuredContent" in result ? content.filter((each) => !repeats(each, structured)) : content
  return { output: { structured, content: kept }, isError: result["isError"] === true }
}

/** A result's text, for an error. */
export const wordsOf = (output: ToolOutput): string => {
  const words = output.content.flatMap((each) => (each.type === "text" ? [each.text] : [])).join("\n")
  if (words.trim() !== "") return words
  return Object.keys(output.structured).length > 0 ? json(output.structured) : "it gave no reason"
}

/** Converts a progress report. */
export const readProgress = (progress: {
  readonly progress: number
  readonly total?: number | undefined
  readonly message?: string | undefined
}): ToolOutput => {
  const { message, progress: done, total } = progress
  const words = total === undefined ? `${done}` : `${done} of ${total}`
  return {
    structured: { progress: done, ...(total === undefined ? {} : { total }) },
    content: [text(string(message) === undefined ? words : `${words}: ${message}`)]
  }
}

/** Limits of one resource; pictures are bounded by the message that contains them. */
export const resourceLimits = { parts: 100, textBytes: 256 * 1024, mediaBytes: 5 * 1024 * 1024 } as const

/** A resource's contents, bounded; a note says what was omitted. */
export const readContents = (result: Answer): ReadonlyArray<ToolContent> => {
  const all = items(result["contents"])
  const shown: Array<ToolContent> = []
  let [texts, files] = [0, 0]
  for (const value of all.slice(0, resourceLimits.parts)) {
    const content = Predicate.isReadonlyRecord(value)
      ? typeof value["text"] === "string"
        ? text(value["text"])
        : resource(value)
      : text(json(value))
    if (content.type === "text") {
      const room = resourceLimits.textBytes - texts
      const bytes = Buffer.from(content.text)
      texts += bytes.length
      if (bytes.length <= room) shown.push(content)
      else {
        // A truncated character becomes U+FFFD, which is removed.
        const head = bytes
          .subarray(0, Math.max(room, 0))
          .toString()
          .replace(/\uFFFD+$/, "")
        shown.push(text(`${head}\n[Cut: the first ${Math.max(room, 0)} of ${bytes.length} bytes are shown]`))
        break
      }
    } else {
      // Pictures are resized when they are shown.
      if (!isPicture(content)) files += Math.floor((content.uri.length * 3) / 4)
      if (files <= resourceLimits.mediaBytes) shown.push(content)
      else shown.push(text(`[${content.name ?? content.mime}: too large to be shown]`))
    }
  }
  if (all.length > resourceLimits.parts)
    shown.push(text(`[${all.length - resourceLimits.parts} more parts are left out]`))
  return shown
}
