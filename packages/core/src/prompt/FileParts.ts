/** Converts a mentioned file or folder to parts, with the limits of `read`. Spec: PX-10..PX-14, PX-25, PX-26. */
import * as path from "node:path"
import { Effect } from "effect"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import type { ExpandedPart, ToolContent } from "@daybook/log/domain/Values"
import type { Agent } from "../domain/Agent.ts"
import { verdictOf } from "../domain/Rule.ts"
import { ToolFailure } from "../domain/ToolError.ts"
import { pdfFault } from "../picture/PictureFormat.ts"
import { dataUri, type PictureFitter, sourceBytes } from "../picture/Pictures.ts"
import { type OpenFile, quoted, type Target, tryFile } from "../workspace/FileFailure.ts"
import { directoryContent, listDirectory } from "../workspace/FolderPage.ts"
import type { LocationFiles, Reference } from "../workspace/LocationFiles.ts"
import { type DecodedText, encodingNames } from "../workspace/TextEncoding.ts"
import {
  looksLikeText,
  pageLimits,
  pageOf,
  readBounded,
  readEncoded,
  readPage,
  type TextPage
} from "../workspace/TextPage.ts"
import { binaryKind, mediaMime } from "./FilePart.ts"
import type { LineRange } from "./Mentions.ts"

// Shared state while one prompt's mentions are resolved: permissions, remaining room, and constructors of parts.

/** Limits of one prompt's expansion (PX-14). */
export const limits = {
  /** Mentions and attachments that yield parts. */
  parts: 100,
  /** Mentions that are resolved. */
  mentions: 1_000,
  /** Lines of one file. */
  lines: 2_000,
  /** Text of all parts. */
  textBytes: 256 * 1024,
  /** One picture or document. */
  mediaBytes: 5 * 1024 * 1024,
  /** All pictures and documents. */
  totalMediaBytes: 20 * 1024 * 1024
} as const

export interface Gathering {
  readonly sessionID: SessionID
  /** Canonical. */
  readonly directory: string
  /** True for a prompt written by a person. A model writes a task's prompt and cannot approve reads. */
  readonly byPerson: boolean
  /** The session's agent, whose rules decide; without it nothing is read. */
  readonly agent: Agent | undefined
  readonly agents: ReadonlyArray<Agent>
  readonly references: ReadonlyMap<string, Reference>
  readonly files: LocationFiles["Type"]
  readonly pictures: PictureFitter
  /** What is left of the limits. */
  readonly room: { text: number; media: number }
}

/** A part without its place in the text. A canonical part appears once, however often it is mentioned. */
export interface Gathered {
  readonly part: Omit<ExpandedPart, "source">
  readonly canonical: boolean
}

export const refuse = (type: string, message: string) => new ToolFailure({ type, message })

export const bytesOf = (count: number) => `${count.toLocaleString("en")} bytes`

const text = (value: string): ToolContent => ({ type: "text", text: value })

export const failed = (name: string, reason: string): Gathered => ({
  part: { kind: "failure", name, content: text(reason.length > 2_000 ? `${reason.slice(0, 2_000)}...` : reason) },
  canonical: false
})

/** A text part, if it fits the remaining room. */
export const gatherText = Effect.fnUntraced(function* (
  gathering: Gathering,
  kind: ExpandedPart["kind"],
  name: string,
  value: string,
  canonical = true
) {
  const size = Buffer.byteLength(value)
  if (size > gathering.room.text) {
    return yield* refuse(
      "prompt.tooLarge",
      `${quoted(name)} does not fit: the references of one prompt may have ${bytesOf(limits.textBytes)} of text`
    )
  }
  gathering.room.text -= size
  return { part: { kind, name, content: text(value) }, canonical } satisfies Gathered
})

/** Takes the size of one picture or document from the remaining room. */
export const takeMedia = Effect.fnUntraced(function* ({ room }: Gathering, name: string, size: number) {
  if (size > limits.mediaBytes) {
    return yield* refuse(
      "prompt.tooLarge",
      `${quoted(name)} has ${bytesOf(size)}; a picture or document may have ${bytesOf(limits.mediaBytes)}`
    )
  }
  if (size > room.media) {
    return yield* refuse(
      "prompt.tooLarge",
      `${quoted(name)} has ${bytesOf(size)}, which does not fit: the pictures and documents of one prompt may have ` +
        `${bytesOf(limits.totalMediaBytes)} together`
    )
  }
  room.media -= size
})

/** A picture in a form that providers accept, if it fits. `kept`: the URI of its stored data, if unchanged. */
export const gatherPicture = Effect.fnUntraced(function* (
  gathering: Gathering,
  name: string,
  bytes: Uint8Array,
  kept?: string
) {
  const {
    bytes: fitted,
    mime,
    note
  } = yield* Effect.mapError(gathering.pictures.fit(bytes), ({ reason }) =>
    refuse("picture.refused", `the picture ${quoted(name)} cannot be shown: ${reason}`)
  )
  yield* takeMedia(gathering, name, fitted.length)
  const uri = fitted === bytes && kept !== undefined ? kept : dataUri(mime, fitted)
  const part: Gathered["part"] = {
    kind: "media",
    name,
    content: { type: "file", uri, mime, name: path.posix.basename(name) || name },
    ...(note === undefined ? {} : { note })
  }
  return part
})

/** Checks the rules of the session's agent. A person's mention counts as approval where the rules ask. */
export const mayRead = ({ agent, byPerson }: Gathering, resource: string): Effect.Effect<void, ToolFailure> => {
  if (agent === undefined) {
    return refuse("permission.denied", `${quoted(resource)} was not read: the session's agent is not known`)
  }
  const verdict = verdictOf(agent.permissions, "read", resource) ?? "ask"
  if (verdict === "allow" || (verdict === "ask" && byPerson)) return Effect.void
  return refuse(
    "permission.denied",
    verdict === "deny"
      ? `the rules of agent "${agent.name}" do not allow "read" on ${quoted(resource)}`
      : `${quoted(resource)} needs a person's approval; ask for it with the tool "read"`
  )
}

const sampleBytes = 8 * 1024
/** Maximum entries of a mentioned folder. */
const shownEntries = 1_000

type Part = Effect.Effect<Gathered, ToolFailure>

const bracketed = (notices: ReadonlyArray<string>) => (notices.length === 0 ? "" : `[${notices.join(" ")}]`)

/** Notices about a page: an adjusted range, truncation, and how to read more. */
const noticesOf = (resource: string, page: TextPage, asked: LineRange | undefined, from: number, to: number) => {
  const last = from + page.lines - 1
  const notices: Array<string> = []
  if (page.lines === 0) notices.push("The file is empty.")
  if (asked !== undefined && (asked.from < 1 || asked.to < asked.from)) {
    notices.push(`Lines ${asked.from} to ${asked.to} were requested.`)
  }
  if (asked !== undefined && page.lines > 0 && last < to && page.next === undefined) {
    notices.push(`The file ends with line ${last}.`)
  }
  if (page.clipped > 0) notices.push(`${page.clipped} lines are longer than ${pageLimits.lineBytes} bytes and cut.`)
  if (page.replaced) notices.push("Bytes that are not UTF-8 are shown as U+FFFD.")
  if (page.next !== undefined && (asked === undefined || last < to)) {
    notices.push(
      `Lines ${from} to ${last}; there are more: go on with the tool "read", path ${quoted(resource)}, ` +
        `offset ${page.next}.`
    )
  }
  return notices
}

const textPart = Effect.fnUntraced(function* (
  gathering: Gathering,
  target: Target,
  file: OpenFile,
  asked: LineRange | undefined,
  sample: Uint8Array,
  other?: DecodedText
): Effect.fn.Return<Gathered, Effect.Effect.Error<Part>, Effect.Effect.Context<Part>> {
  const [{ resource }, { handle }] = [target, file]
  const ends = asked === undefined ? [1, Infinity] : [asked.from, asked.to].map((line) => Math.max(line, 1))
  const [from, to] = [Math.min(...ends), Math.max(...ends)]
  const most = Math.min(to - from + 1, limits.lines)
  const page = other === undefined ? yield* readPage(handle, resource, from, most) : pageOf(other.text, from, most)
  const found = page.replaced ? yield* readEncoded(handle, resource, sample) : undefined
  if (found !== undefined) return yield* textPart(gathering, target, file, asked, sample, found)
  if (page.lines === 0 && from > 1) {
    return yield* refuse("tool.input", `${quoted(resource)} has ${page.seen} lines; there is no line ${from}`)
  }
  const encoded = other === undefined ? [] : [`The file is ${encodingNames[other.encoding]}.`]
  const notices = bracketed([...encoded, ...noticesOf(resource, page, asked, from, to)])
  const partial = asked !== undefined || page.next !== undefined
  const name = partial && page.lines > 0 ? `${resource}#L${from}-${from + page.lines - 1}` : resource
  const separator = page.text === "" || page.text.endsWith("\n") || notices === "" ? "" : "\n"
  return yield* gatherText(gathering, "file", name, `${page.text}${separator}${notices}`)
})

const mediaPart = Effect.fnUntraced(function* (
  gathering: Gathering,
  { resource }: Target,
  { handle, stats }: OpenFile,
  mime: string
) {
  const picture = mime.startsWith("image/")
  if (!picture) yield* takeMedia(gathering, resource, stats.size)
  else if (stats.size > sourceBytes) {
    const most = `a picture may have ${bytesOf(sourceBytes)}`
    return yield* refuse("prompt.tooLarge", `${quoted(resource)} has ${bytesOf(stats.size)}; ${most}`)
  }
  const content = yield* readBounded(handle, resource, stats.size)
  if (content === undefined) return yield* refuse("file.access", `${quoted(resource)} changed while it was read`)
  if (picture) return { part: yield* gatherPicture(gathering, resource, content), canonical: true } satisfies Gathered
  const fault = pdfFault(content)
  if (fault !== undefined) return yield* refuse("file.invalid", `${quoted(resource)} cannot be shown: ${fault}`)
  const uri = `data:${mime};base64,${content.toString("base64")}`
  return {
    part: { kind: "media", name: resource, content: { type: "file", uri, mime, name: path.posix.basename(resource) } },
    canonical: true
  } satisfies Gathered
})

const folderPart = Effect.fnUntraced(function* (
  gathering: Gathering,
  target: Target,
  asked: LineRange | undefined,
  words: ReadonlyArray<string>
) {
  const recheck = gathering.files.recheck(target.real, target.root)
  const page = yield* listDirectory(target, recheck, 1, shownEntries)
  const listing = directoryContent(page).flatMap((content) => (content.type === "text" ? [content.text] : []))
  const notices = [
    ...(asked === undefined ? [] : ["A folder has no lines."]),
    ...(page.next === undefined ? [] : [`List the rest with the tool "read", path ${quoted(target.resource)}.`])
  ]
  return [...words, ...listing, bracketed(notices)].filter((line) => line !== "").join("\n")
})

const content = (gathering: Gathering, target: Target, asked: LineRange | undefined): Part =>
  Effect.scoped(
    Effect.gen(function* () {
      const file = yield* gathering.files.open(target)
      if (file.stats.isDirectory()) {
        const listing = yield* folderPart(gathering, target, asked, [])
        return yield* gatherText(gathering, "directory", target.resource, listing)
      }
      const buffer = Buffer.alloc(sampleBytes)
      const { bytesRead } = yield* tryFile("read", target.resource, () => file.handle.read(buffer, 0, sampleBytes, 0))
      const sample = buffer.subarray(0, bytesRead)
      const mime = mediaMime(sample)
      if (mime !== undefined) return yield* mediaPart(gathering, target, file, mime)
      if (looksLikeText(sample)) return yield* textPart(gathering, target, file, asked, sample)
      const other = yield* readEncoded(file.handle, target.resource, sample)
      if (other !== undefined) return yield* textPart(gathering, target, file, asked, sample, other)
      return yield* refuse(
        "file.binary",
        `${quoted(target.resource)} is ${binaryKind(sample)} (${bytesOf(file.stats.size)}); ` +
          "text in UTF-8, UTF-16 or Latin-1, pictures and PDF documents can be shown"
      )
    })
  )

export const targetPart = (gathering: Gathering, target: Target, asked?: LineRange): Part =>
  Effect.zipRight(mayRead(gathering, target.resource), content(gathering, target, asked))

export const referenceParts = Effect.fn("FileParts.reference")(function* (gathering: Gathering, name: string) {
  const description = gathering.references.get(name)?.description?.slice(0, 4_000)
  const target = yield* gathering.files.resolve(gathering.sessionID, `${name}:`)
  yield* mayRead(gathering, target.resource)
  const words = (what: string) => [
    ...(description === undefined ? [] : [description]),
    `${what} It lies outside the working directory and can only be read.`
  ]
  const isFolder = yield* Effect.scoped(Effect.map(gathering.files.open(target), ({ stats }) => stats.isDirectory()))
  if (isFolder) {
    const how = `To read on, use the tool "read" with a path such as ${quoted(`${name}:<name>`)}. The folder holds:`
    const listing = yield* folderPart(gathering, target, undefined, [...words("This is a folder."), how])
    return [yield* gatherText(gathering, "reference", name, listing)]
  }
  const about = words(`This is a file; the tool "read" knows it as ${quoted(`${name}:`)}. Its content follows.`)
  return [
    yield* gatherText(gathering, "reference", name, about.join("\n")),
    yield* content(gathering, target, undefined)
  ]
})
