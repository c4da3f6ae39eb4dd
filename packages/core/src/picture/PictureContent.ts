/**
 * Fits the pictures in a tool's result, and checks its PDF documents, before the result is stored; they come from a file, or
 * from a server that may declare anything. One that cannot be shown becomes text and leaves the rest intact.
 * Spec: PC-7, PC-8, PC-640.
 */
import { Effect, Either } from "effect"
import { dataBytes } from "@daybook/log/domain/DataUri"
import type { ToolContent } from "@daybook/log/domain/Values"
import { looksLikeText } from "../workspace/TextPage.ts"
import { pdfFault } from "./PdfDocument.ts"
import { pictureFormat } from "./PictureFormat.ts"
import type { PictureFitter } from "./Pictures.ts"

type File = Extract<ToolContent, { type: "file" }>

/** The content, and whether it consists only of media that cannot be shown. */
export interface FittedContent {
  readonly content: ReadonlyArray<ToolContent>
  readonly nothing: boolean
}

/** The first bytes, enough to detect the format. */
const beginning = /^data:[^,]*;base64,(.{0,512})/s

/** Whether the file is a picture, or is declared as one. */
export const isPicture = ({ mime, uri }: File): boolean => {
  const [, head] = beginning.exec(uri.slice(0, 2_048)) ?? []
  return /^image\//i.test(mime) ? /^data:/i.test(uri) : pictureFormat(Buffer.from(head ?? "", "base64")) !== undefined
}

/** Whether the file is a PDF document, or is declared as one. */
const isDocument = ({ mime, uri }: File): boolean =>
  /^data:/i.test(uri) &&
  (/^application\/(?:x-)?pdf\b/i.test(mime) || /^data:[^,]*;base64,JVBERi/i.test(uri.slice(0, 300)))

const isMarkup = (bytes: Uint8Array) => /^\uFEFF?\s*</.test(Buffer.from(bytes.subarray(0, 256)).toString())

const text = (value: string): ToolContent => ({ type: "text", text: value })

export const dataUri = (mime: string, bytes: Uint8Array): string =>
  `data:${mime};base64,${Buffer.from(bytes).toString("base64")}`

/** Returns the picture, or the text that replaces it (`shown: false`). */
const fitFile = Effect.fnUntraced(function* (pictures: PictureFitter, file: File) {
  const name = file.name ?? `a picture (${file.mime})`
  const bytes = dataBytes(file.uri)
  if (Either.isLeft(bytes)) return { shown: false, content: [text(`[${name} cannot be shown: it ${bytes.left}]`)] }
  if (pictureFormat(bytes.right) === undefined && looksLikeText(bytes.right) && isMarkup(bytes.right)) {
    // SVG is passed on as text: it is not rendered, so its references are never opened.
    return { shown: true, content: [text(`[${name}, as text:]\n${Buffer.from(bytes.right).toString()}`)] }
  }
  return yield* pictures.fit(bytes.right).pipe(
    Effect.map(({ bytes: fitted, mime, note }) => ({
      shown: true,
      content: [
        ...(note === undefined ? [] : [text(`[${name}: ${note}]`)]),
        { ...file, mime, uri: fitted === bytes.right && mime === file.mime ? file.uri : dataUri(mime, fitted) }
      ]
    })),
    Effect.catchTag("PictureRefused", ({ reason }) =>
      Effect.succeed({ shown: false, content: [text(`[${name} cannot be shown: ${reason}]`)] })
    )
  )
})

/** The document, or the text that replaces it. */
const checkedDocument = (file: File) => {
  const name = file.name ?? "a PDF document"
  const bytes = dataBytes(file.uri)
  const fault = Either.isLeft(bytes) ? `it ${bytes.left}` : pdfFault(bytes.right)
  return fault === undefined
    ? { shown: true, content: [file] }
    : { shown: false, content: [text(`[${name} cannot be shown: ${fault}]`)] }
}

const fitItem = (pictures: PictureFitter, item: ToolContent) => {
  if (item.type === "file" && isPicture(item)) return fitFile(pictures, item)
  return Effect.succeed(
    item.type === "file" && isDocument(item) ? checkedDocument(item) : { shown: true, content: [item] }
  )
}

/** The content of a result in a form that can be stored and shown. */
export const fitContent = Effect.fn("PictureContent.fit")(function* (
  pictures: PictureFitter,
  content: ReadonlyArray<ToolContent>
): Effect.fn.Return<FittedContent> {
  if (!content.some((item) => item.type === "file" && (isPicture(item) || isDocument(item)))) {
    return { content, nothing: false }
  }
  const fitted = yield* Effect.forEach(content, (item) => fitItem(pictures, item))
  return { content: fitted.flatMap((each) => each.content), nothing: fitted.every(({ shown }) => !shown) }
})
