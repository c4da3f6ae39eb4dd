/**
 * Converts each picture to a form that every provider accepts, once, on arrival: the stored form is the shown form.
 * Decides what stays, what is converted, and what is rejected and why. Process-global: one picture is decoded at a
 * time, which bounds memory to one picture. Spec: PC-1..PC-8.
 */
import { Context, Data, Effect } from "effect"
import { commonPictures } from "../model/PictureLimits.ts"
import { loadDecoder, type Decoded } from "./PictureDecoder.ts"
import { pictureFormat, pictureHeader, type PictureFormat } from "./PictureFormat.ts"

/** A picture that cannot be shown; the reason is the end of a sentence about it. */
export class PictureRefused extends Data.TaggedError("PictureRefused")<{ readonly reason: string }> {}

/** A picture in stored form. */
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

const noteOf = (format: PictureFormat, { encoded, frames, height, width }: Decoded): string | undefined => {
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

/** Converts pictures to stored form. */
export interface PictureFitter {
  /** Takes the bytes of a picture, whatever its name or type. */
  readonly fit: (bytes: Uint8Array) => Effect.Effect<FittedPicture, PictureRefused>
}

/** A fitter with this decoder. */
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

/** The picture fitter of this process. */
export class Pictures extends Context.Reference<Pictures>()("@daybook/core/Pictures", {
  defaultValue: () => makePictures(loadDecoder)
}) {}
