/**
 * Converts a mentioned file or folder to parts, with the checks and limits of the tool `read`. Spec: PX-10..PX-14, PX-25,
 * PX-26.
 */
import * as path from "node:path"
import { Effect } from "effect"
import type { ToolFailure } from "../domain/ToolError.ts"
import { pdfFault } from "../picture/PdfDocument.ts"
import { sourceBytes } from "../picture/Pictures.ts"
import { tryFile } from "../workspace/FileFailure.ts"
import { directoryContent, listDirectory } from "../workspace/FolderPage.ts"
import type { OpenFile, Target } from "../workspace/Target.ts"
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
import {
  bytesOf,
  type Gathered,
  type Gathering,
  gatherPicture,
  gatherText,
  limits,
  mayRead,
  quoted,
  refuse,
  takeMedia
} from "./Gathered.ts"
import { binaryKind, mediaMime } from "./MediaKind.ts"
import type { LineRange } from "./Mentions.ts"

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

/** The part of a resolved target. */
export const targetPart = (gathering: Gathering, target: Target, asked?: LineRange): Part =>
  Effect.zipRight(mayRead(gathering, target.resource), content(gathering, target, asked))

/** A configured reference: its description, then its folder's listing or its file. */
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
