/**
 * Decodes, scales and encodes pictures with `sharp`, which uses its own threads. The package is optional and loaded
 * with the first picture. Input is bounded before it is decoded, and only the formats of `PictureFormat.ts` reach it,
 * so none that can refer to other files. Spec: PC-3..PC-6.
 */
import { Data, Effect } from "effect"
import { commonPictures, scaledEdge } from "../model/PictureLimits.ts"
import type { PictureFormat } from "./PictureFormat.ts"

type Sharp = (typeof import("sharp"))["default"]

/** The decoder rejects the picture; the reason is the end of a sentence about it. */
export class Undecodable extends Data.TaggedError("Undecodable")<{ readonly reason: string }> {}

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

/** A picture in a form that providers accept. */
export interface Encoded {
  readonly bytes: Uint8Array
  readonly format: string
  readonly width: number
  readonly height: number
}

/** The picture's facts, and its new form; `encoded` is undefined if it can stay as it is. */
export interface Decoded {
  readonly width: number
  readonly height: number
  readonly frames: number
  readonly encoded: Encoded | undefined
}

/** Inspects a picture and converts it to a form that every provider accepts. */
export interface PictureDecoder {
  readonly decode: (bytes: Uint8Array, format: PictureFormat) => Effect.Effect<Decoded, Undecodable>
}

/** The longest edge, then the quality of a JPEG; undefined for a PNG. The last attempt always fits. */
const attempts: ReadonlyArray<readonly [edge: number, quality: number | undefined]> = [
  [scaledEdge, undefined],
  [scaledEdge, 85],
  [scaledEdge, 60],
  [scaledEdge / 2, 60]
]

const rawBytes = Math.floor(commonPictures.base64Bytes / 4) * 3

const open = (sharp: Sharp, bytes: Uint8Array, pixels: number) =>
  sharp(bytes, { failOn: "error", limitInputPixels: pixels, sequentialRead: true, pages: 1 }).timeout({ seconds })

/**
 * Decodes the whole picture once and discards the result: a picture that fails here would fail every request at the
 * provider.
 */
const verify = async (sharp: Sharp, bytes: Uint8Array, pixels: number) => {
  await open(sharp, bytes, pixels).resize(16, 16, { fit: "fill" }).raw().toBuffer()
}

const encode = async (sharp: Sharp, bytes: Uint8Array, pixels: number, lossless: boolean): Promise<Encoded> => {
  const size = { width: scaledEdge, height: scaledEdge, fit: "inside", withoutEnlargement: true } as const
  const { data, info } = await open(sharp, bytes, pixels)
    .autoOrient()
    .resize(size)
    .toColourspace("srgb")
    .raw({ depth: "uchar" })
    .toBuffer({ resolveWithObject: true })
  const { channels, height, width } = info
  let last: Encoded | undefined
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

const decode = async (sharp: Sharp, bytes: Uint8Array, format: PictureFormat): Promise<Decoded> => {
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
