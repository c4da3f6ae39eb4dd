/**
 * Converts each picture to a form that every provider accepts, once, on arrival: the stored form is the shown form.
 * Decides what stays, what is converted, and what is rejected and why. Process-global: one picture is decoded at a
 * time, which bounds memory to one picture. Spec: PC-1..PC-8, PC-640 in specs/context.md.
 */
import { Context, Data, Effect, Either } from "effect"
import { dataBytes } from "@daybook/log/domain/DataUri"
import type { ToolContent } from "@daybook/log/domain/Values"
import { looksLikeText } from "../workspace/TextPage.ts"
import { pdfFault, pictureFormat, type PictureFormat, pictureHeader } from "./PictureFormat.ts"

// The providers' limits for pictures, and the limits that satisfy all of them. A session may switch models at any
// turn and shows its pictures again in every request, so a picture is fitted to the common limits once, not to the
// current model. Pure data. Spec: PC-2 in specs/context.md.

interface PictureLimits {
  /** Bytes of one picture in base64, the size that counts in requests. */
  readonly base64Bytes: number
  /** Pixels of the longer edge. */
  readonly edge: number
  readonly formats: ReadonlyArray<string>
  /** Whether pictures with several frames are accepted. */
  readonly animated: boolean
}

const common = ["image/png", "image/jpeg", "image/gif", "image/webp"]
const mib = 1024 * 1024

/** By API. Infinity if the provider documents no maximum edge. */
const providerPictures = {
  /** Accepts 8,000 pixels, but only 2,000 in a request with more than 20 pictures; scales down to 1,568 itself. */
  anthropic: { base64Bytes: 5 * mib, edge: 8_000, formats: common, animated: true },
  openai: { base64Bytes: 20 * mib, edge: Infinity, formats: common, animated: false }
} as const satisfies Readonly<Record<string, PictureLimits>>

const all: ReadonlyArray<PictureLimits> = Object.values(providerPictures)

/** The limits that satisfy every provider. */
export const commonPictures: PictureLimits = {
  base64Bytes: Math.min(...all.map(({ base64Bytes }) => base64Bytes)),
  edge: Math.min(...all.map(({ edge }) => edge)),
  formats: common.filter((format) => all.every(({ formats }) => formats.includes(format))),
  animated: all.every(({ animated }) => animated)
}

/** The edge that pictures are scaled to: every provider accepts it in every request, and none uses more detail. */
export const scaledEdge = 2_000

// Decodes, scales and encodes pictures with `sharp`, an optional package. Only bounded input in the formats of
// `PictureFormat.ts` reaches `sharp`, and none of these formats can refer to other files.

type Sharp = (typeof import("sharp"))["default"]

/** The decoder rejects the picture; the reason is the end of a sentence about it. */
class Undecodable extends Data.TaggedError("Undecodable")<{ readonly reason: string }> {}

/** Maximum decoded pixels by format. The last formats, and interlaced pictures, are decoded in memory as a whole. */
const pixelLimits: Readonly<Partial<Record<PictureFormat, number>>> = {
  "image/png": 100_000_000,
  "image/jpeg": 100_000_000,
  "image/webp": 50_000_000,
  "image/tiff": 50_000_000,
  "image/gif": 25_000_000,
  "image/avif": 16_000_000
}
const interlacedPixels = 50_000_000

/** Timeout per picture in seconds; a thread stops only when its decoder checks the clock. */
const seconds = 20

interface EncodedPicture {
  readonly bytes: Uint8Array
  readonly format: string
  readonly width: number
  readonly height: number
}

/** The picture's facts, and its new form; `encoded` is undefined if it can stay as it is. */
interface DecodedPicture {
  readonly width: number
  readonly height: number
  readonly frames: number
  readonly encoded: EncodedPicture | undefined
}

/** Inspects a picture and converts it to a form that every provider accepts. */
export interface PictureDecoder {
  readonly decode: (bytes: Uint8Array, format: PictureFormat) => Effect.Effect<DecodedPicture, Undecodable>
}

/** The longest edge, then the quality of a JPEG; undefined for a PNG. The last attempt always fits. */
const attempts: ReadonlyArray<readonly [edge: number, quality: number | undefined]> = [
  [scaledEdge, undefined],
  [scaledEdge, 85],
  [scaledEdge, 60],
  [scaledEdge / 2, 60]
]

const open = (sharp: Sharp, bytes: Uint8Array, pixels: number) =>
  sharp(bytes, { failOn: "error", limitInputPixels: pixels, sequentialRead: true, pages: 1 }).timeout({ seconds })

/** Decodes the whole picture and discards the result: a damaged picture would fail every request. */
const verify = async (sharp: Sharp, bytes: Uint8Array, pixels: number) => {
  await open(sharp, bytes, pixels).resize(16, 16, { fit: "fill" }).raw().toBuffer()
}

const encode = async (sharp: Sharp, bytes: Uint8Array, pixels: number, lossless: boolean): Promise<EncodedPicture> => {
  const size = { width: scaledEdge, height: scaledEdge, fit: "inside", withoutEnlargement: true } as const
  const { data, info } = await open(sharp, bytes, pixels)
    .autoOrient()
    .resize(size)
    .toColourspace("srgb")
    .raw({ depth: "uchar" })
    .toBuffer({ resolveWithObject: true })
  const { channels, height, width } = info
  let last: EncodedPicture | undefined
  for (const [edge, quality] of attempts) {
    if (quality === undefined && !lossless) continue
    const scaled = sharp(data, { raw: { width, height, channels } }).resize({ ...size, width: edge, height: edge })
    const made = await (quality === undefined ? scaled.png() : scaled.flatten({ background: "#fff" }).jpeg({ quality }))
      .timeout({ seconds })
      .toBuffer({ resolveWithObject: true })
    const format = quality === undefined ? "image/png" : "image/jpeg"
    last = { bytes: made.data, format, width: made.info.width, height: made.info.height }
    if (made.data.length <= rawBytes) return last
  }
  throw new Error(`it still has ${last?.bytes.length} bytes when it is scaled down`)
}

const decode = async (sharp: Sharp, bytes: Uint8Array, format: PictureFormat): Promise<DecodedPicture> => {
  const limit = pixelLimits[format]
  if (limit === undefined) throw new Undecodable({ reason: "its format cannot be decoded here" })
  // Reads the header only: a declared size allocates nothing.
  const {
    autoOrient,
    hasAlpha,
    isProgressive,
    orientation = 1,
    pages = 1,
    space,
    height,
    width
  } = await sharp(bytes, {
    limitInputPixels: false
  }).metadata()
  const pixels = Math.min(limit, isProgressive ? interlacedPixels : Infinity)
  if (width * height > pixels) {
    throw new Undecodable({
      reason: `it has ${width}x${height} pixels, and at most ${pixels.toLocaleString("en")} are decoded`
    })
  }
  const stays =
    commonPictures.formats.includes(format) &&
    Math.max(width, height) <= scaledEdge &&
    bytes.length <= rawBytes &&
    orientation === 1 &&
    (pages === 1 || commonPictures.animated) &&
    space !== "cmyk"
  const found = { width: autoOrient.width, height: autoOrient.height, frames: pages }
  if (!stays) {
    const lossless = format !== "image/jpeg" && (hasAlpha || format !== "image/avif")
    return { ...found, encoded: await encode(sharp, bytes, pixels, lossless) }
  }
  await verify(sharp, bytes, pixels)
  return { ...found, encoded: undefined }
}

const reasonOf = (cause: unknown) => {
  const words = cause instanceof Error ? (cause.message.split("\n")[0] ?? "") : ""
  return /timeout/i.test(words)
    ? `it takes more than ${seconds} seconds to decode`
    : `it is damaged or cut off (${words.slice(0, 200)})`
}

/** Loads the decoder; undefined if `sharp` is not installed, or not for this platform. */
export const loadDecoder = (): Promise<PictureDecoder | undefined> =>
  import("sharp").then(
    ({ default: sharp }) => {
      // Decoded pictures are never reused.
      sharp.cache(false)
      return {
        decode: (bytes, format) =>
          Effect.tryPromise({
            try: () => decode(sharp, bytes, format),
            catch: (cause) => (cause instanceof Undecodable ? cause : new Undecodable({ reason: reasonOf(cause) }))
          })
      }
    },
    () => undefined
  )

/** A picture that cannot be shown; the reason is the end of a sentence about it. */
export class PictureRefused extends Data.TaggedError("PictureRefused")<{ readonly reason: string }> {}

export interface FittedPicture {
  readonly bytes: Uint8Array
  readonly mime: string
  /** The conversion, in a sentence; undefined if the picture is unchanged. */
  readonly note: string | undefined
}

/** Larger files are rejected without inspection. */
export const sourceBytes = 32 * 1024 * 1024

const refuse = (reason: string) => new PictureRefused({ reason })

const count = (bytes: number) => `${bytes.toLocaleString("en")} bytes`

const rawBytes = Math.floor(commonPictures.base64Bytes / 4) * 3

const nameOf = (format: string) => format.slice("image/".length).toUpperCase()

const taken = commonPictures.formats.map(nameOf).join(", ")

const noteOf = (format: PictureFormat, { encoded, frames, height, width }: DecodedPicture): string | undefined => {
  if (encoded === undefined) return undefined
  const changes = [
    ...(encoded.width === width && encoded.height === height
      ? []
      : [`scaled from ${width}x${height} to ${encoded.width}x${encoded.height} pixels`]),
    ...(encoded.format === format ? [] : [`converted from ${nameOf(format)} to ${nameOf(encoded.format)}`]),
    ...(frames === 1 ? [] : [`the first of ${frames} frames`])
  ]
  return changes.length === 0 ? undefined : changes.join(", ")
}

const howToDecode = 'install the package "sharp" to have it converted, or give it as PNG or JPEG'

/** Without a decoder, accepts what every provider accepts, and rejects the rest with the limit. */
const fitUndecoded = (bytes: Uint8Array, format: PictureFormat): Effect.Effect<FittedPicture, PictureRefused> => {
  if (!commonPictures.formats.includes(format)) {
    return refuse(`it is a ${nameOf(format)} picture, and providers take ${taken}; ${howToDecode}`)
  }
  const header = pictureHeader(bytes)
  if (header === undefined) return refuse("it is damaged or cut off")
  if (bytes.length > rawBytes) {
    return refuse(`it has ${count(bytes.length)}, and providers take ${count(rawBytes)} of a picture; ${howToDecode}`)
  }
  const { animated, height, width } = header
  if (Math.max(width, height) > commonPictures.edge) {
    return refuse(
      `it has ${width}x${height} pixels, and providers take ${commonPictures.edge} along an edge; ${howToDecode}`
    )
  }
  if (animated && !commonPictures.animated) {
    return refuse(`it is animated, and not every provider takes that; ${howToDecode}`)
  }
  return Effect.succeed({ bytes, mime: format, note: undefined })
}

export interface PictureFitter {
  /** Takes the bytes of a picture, whatever its name or type. */
  readonly fit: (bytes: Uint8Array) => Effect.Effect<FittedPicture, PictureRefused>
}

export const makePictures = (load: typeof loadDecoder): PictureFitter => {
  const permits = Effect.unsafeMakeSemaphore(1)
  let loaded: ReturnType<typeof loadDecoder> | undefined

  const fitDecoded = Effect.fnUntraced(function* (bytes: Uint8Array, format: PictureFormat) {
    const decoder = yield* Effect.promise(() => (loaded ??= load()))
    if (decoder === undefined) return yield* fitUndecoded(bytes, format)
    const decoded = yield* Effect.mapError(decoder.decode(bytes, format), ({ reason }) => refuse(reason))
    const { encoded } = decoded
    return { bytes: encoded?.bytes ?? bytes, mime: encoded?.format ?? format, note: noteOf(format, decoded) }
  })

  return {
    fit: Effect.fn("Pictures.fit")(function* (bytes) {
      const format = pictureFormat(bytes)
      if (format === undefined) return yield* refuse("it is not a picture in a known format")
      if (bytes.length > sourceBytes) {
        return yield* refuse(`it has ${count(bytes.length)}, and at most ${count(sourceBytes)} are read`)
      }
      // A decoder is uninterruptible: a waiter may leave, and the next picture starts when this one is done.
      return yield* Effect.disconnect(permits.withPermits(1)(Effect.uninterruptible(fitDecoded(bytes, format))))
    })
  }
}

export class Pictures extends Context.Reference<Pictures>()("@daybook/core/Pictures", {
  defaultValue: () => makePictures(loadDecoder)
}) {}

// Fits the pictures in a tool's result, and checks its PDF documents, before the result is stored. What cannot be shown
// becomes text.

type File = Extract<ToolContent, { type: "file" }>

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
) {
  if (!content.some((item) => item.type === "file" && (isPicture(item) || isDocument(item)))) {
    return { content, nothing: false }
  }
  const fitted = yield* Effect.forEach(content, (item) => fitItem(pictures, item))
  return { content: fitted.flatMap((each) => each.content), nothing: fitted.every(({ shown }) => !shown) }
})
