/** Converts files given with a prompt, and contents of MCP resources, to parts. Spec: PX-13, PX-15..PX-18. */
import * as fs from "node:fs/promises"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import { Effect, Either } from "effect"
import { attachmentUri, dataBytes } from "@daybook/log/domain/DataUri"
import type { FileAttachment, ToolContent } from "@daybook/log/domain/Values"
import type { ToolFailure } from "../domain/ToolError.ts"
import { pdfFault } from "../picture/PdfDocument.ts"
import { dataUri } from "../picture/PictureContent.ts"
import { cutHead } from "../support/TextBounds.ts"
import { decodeOther } from "../workspace/TextEncoding.ts"
import { looksLikeText } from "../workspace/TextPage.ts"
import { targetPart } from "./FileParts.ts"
import {
  bytesOf,
  type Gathered,
  type Gathering,
  gatherPicture,
  gatherText,
  mayRead,
  quoted,
  refuse,
  takeMedia
} from "./Gathered.ts"
import { binaryKind, mediaMime } from "./MediaKind.ts"
import { type LineRange, splitLines } from "./Mentions.ts"
import type { ResourceReader } from "./ResourceReader.ts"

/** Longer than a host's own timeout. */
const resourceTime = "70 seconds"

/** Text that exists nowhere else is truncated only at the prompt's limit. */
const wholeText = Effect.fnUntraced(function* (
  gathering: Gathering,
  kind: "file" | "resource",
  name: string,
  value: string
) {
  const cut = cutHead(value, { lines: Infinity, bytes: Math.max(gathering.room.text - 200, 0) })
  const whole = Buffer.byteLength(value)
  const shown =
    cut.bytes === 0 || cut.bytes === whole
      ? value
      : `${cut.shown}\n[Cut: the first ${bytesOf(cut.bytes)} of ${bytesOf(whole)}; the rest does not fit.]`
  return yield* gatherText(gathering, kind, name, shown, false)
})

/** Media or text from bytes; `kept` is the URI of data that is already stored. */
const bytesPart = Effect.fnUntraced(function* (
  gathering: Gathering,
  kind: "file" | "resource",
  name: string,
  bytes: Uint8Array,
  kept?: string
) {
  const mime = mediaMime(bytes)
  if (mime?.startsWith("image/") === true) {
    return { part: yield* gatherPicture(gathering, name, bytes, kept), canonical: false } satisfies Gathered
  }
  if (mime !== undefined) {
    const fault = pdfFault(bytes)
    if (fault !== undefined) return yield* refuse("file.invalid", `${quoted(name)} cannot be shown: ${fault}`)
    yield* takeMedia(gathering, name, bytes.length)
    const content: ToolContent = {
      type: "file",
      uri: kept ?? dataUri(mime, bytes),
      mime,
      name: path.posix.basename(name) || name
    }
    return { part: { kind: "media", name, content }, canonical: false } satisfies Gathered
  }
  const text = looksLikeText(bytes) ? Buffer.from(bytes).toString() : decodeOther(bytes)?.text
  if (text !== undefined) return yield* wholeText(gathering, kind, name, text)
  return yield* refuse(
    "file.binary",
    `${quoted(name)} is ${binaryKind(bytes)} (${bytesOf(bytes.length)}), which cannot be shown`
  )
})

/** `?start=10&end=20`, or `#L10-20`. */
const linesOf = (url: URL): LineRange | undefined => {
  const [start, end] = [url.searchParams.get("start"), url.searchParams.get("end")]
  const line = /^\d{1,9}$/
  if (start !== null && line.test(start)) {
    return { from: Number(start), to: end !== null && line.test(end) ? Number(end) : Number(start) }
  }
  return splitLines(`x${url.hash}`).lines
}

const localFile = Effect.fnUntraced(function* (gathering: Gathering, uri: string, name: string) {
  const url = URL.canParse(uri) ? new URL(uri) : undefined
  const given = yield* Effect.try({
    try: () => fileURLToPath(url ?? uri),
    catch: () => refuse("path.invalid", `${quoted(name)} is not the URI of a file on this machine`)
  })
  const within = (file: string) => {
    const relative = path.relative(gathering.directory, file)
    return relative === ".." || relative.startsWith(`..${path.sep}`) || path.isAbsolute(relative) ? undefined : relative
  }
  // A path through a link to the Location's folder counts as inside.
  const real = Effect.orElseSucceed(
    Effect.tryPromise(() => fs.realpath(given)),
    () => given
  )
  const relative = within(given) ?? within(yield* real)
  if (relative === undefined) {
    return yield* refuse("path.outside", `${quoted(name)} lies outside the Location; only files inside it can be used`)
  }
  const target = yield* gathering.files.resolve(gathering.sessionID, relative === "" ? "." : `./${relative}`)
  return yield* targetPart(gathering, target, url === undefined ? undefined : linesOf(url))
})

/** The contents of one resource, or why they cannot be read. */
export const resourceParts = Effect.fn("AttachmentParts.resource")(function* (
  gathering: Gathering,
  reader: ResourceReader["Type"],
  server: string,
  uri: string
) {
  const name = `${server}:${uri}`
  yield* mayRead(gathering, name)
  // Admission is uninterruptible; a server that hangs must not block it.
  const contents = yield* Effect.interruptible(reader.read(server, uri)).pipe(
    Effect.mapError(({ message }) => refuse("resource.unreadable", message)),
    Effect.timeoutFail({
      duration: resourceTime,
      onTimeout: () => refuse("resource.unreadable", `MCP server "${server}" did not answer in time`)
    })
  )
  if (contents.length === 0) return yield* refuse("resource.unreadable", `resource ${quoted(name)} is empty`)
  return yield* Effect.forEach(contents, (content) => {
    if (content.type === "text") return wholeText(gathering, "resource", name, content.text)
    const bytes = dataBytes(content.uri)
    return Either.isLeft(bytes)
      ? refuse("resource.unreadable", `${quoted(name)} ${bytes.left}`)
      : bytesPart(gathering, "resource", name, bytes.right)
  })
})

/** A display name for an attachment without one; it reveals no folders of a path outside the Location. */
export const attachmentName = ({ name, uri }: FileAttachment, index: number): string => {
  if (name !== undefined && name !== "") return name.slice(0, 300)
  const last = /^data:/i.test(uri) ? "" : (uri.split(/[?#]/)[0]?.split(/[/\\]/).at(-1) ?? "")
  return last === "" ? `attachment ${index + 1}` : last.slice(0, 300)
}

/** The parts of one attachment. */
export const attachmentParts = (
  gathering: Gathering,
  reader: ResourceReader["Type"],
  file: FileAttachment,
  index: number
): Effect.Effect<ReadonlyArray<Gathered>, ToolFailure> => {
  const { uri } = file
  const name = attachmentName(file, index)
  const one = Effect.map((part: Gathered) => [part])
  const scheme = /^([A-Za-z][A-Za-z0-9+.-]+):/.exec(uri)?.[1]?.toLowerCase()
  if (scheme === "data") {
    const bytes = dataBytes(uri)
    return Either.isLeft(bytes)
      ? refuse("file.invalid", `the data of ${quoted(name)} ${bytes.left}`)
      : one(bytesPart(gathering, "file", name, bytes.right, attachmentUri(index)))
  }
  if (scheme === "file") return one(localFile(gathering, uri, name))
  if (scheme === "http" || scheme === "https") {
    return refuse("file.remote", `${quoted(name)} is on the web and was not fetched; give its content instead`)
  }
  const [, server, resource] = /^mcp:([^:]+):(.+)$/s.exec(uri) ?? []
  if (server !== undefined && resource !== undefined) return resourceParts(gathering, reader, server, resource)
  if (scheme !== undefined && uri.includes("://")) {
    return refuse("file.remote", `${quoted(name)} has a URI with an unsupported scheme ("${scheme}:")`)
  }
  return one(
    Effect.flatMap(gathering.files.resolve(gathering.sessionID, uri), (target) => targetPart(gathering, target))
  )
}
