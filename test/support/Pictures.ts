/** Creates real pictures for tests with the decoder's encoder, and inspects the results. */
import { randomBytes } from "node:crypto"
import { crc32 } from "node:zlib"
import sharp from "sharp"
import { Effect } from "effect"

export interface Wanted {
  readonly width?: number
  readonly height?: number
  readonly format?: "png" | "jpeg" | "gif" | "webp" | "tiff" | "avif"
  /** Random pixels do not compress. */
  readonly noise?: boolean
  readonly alpha?: boolean
  readonly frames?: number
  readonly orientation?: number
  readonly cmyk?: boolean
  readonly deep?: boolean
  readonly interlaced?: boolean
}

/** A picture; its left half is red, its right half blue, unless it is noise. */
export const picture = (wanted: Wanted = {}): Effect.Effect<Buffer> =>
  Effect.promise(async () => {
    const { alpha = false, format = "png", frames = 1, height = 8, interlaced = false, width = 8 } = wanted
    const channels = alpha ? 4 : 3
    const row = Buffer.alloc(width * channels)
    for (let x = 0; x < width; x++) {
      const colour = x < width / 2 || width === 1 ? [255, 0, 0, 255] : [0, 0, 255, 128]
      row.set(colour.slice(0, channels), x * channels)
    }
    const size = width * height * channels
    const pixels = wanted.noise === true ? randomBytes(size) : Buffer.alloc(size, row)
    const raw = { raw: { width, height, channels } } as const
    let image = sharp(pixels, raw)
    if (frames > 1) {
      const all = Array.from({ length: frames }, (_, index) =>
        sharp(pixels, raw)
          .negate(index % 2 === 1)
          .png()
          .toBuffer()
      )
      image = sharp(await Promise.all(all), { join: { animated: true } })
    }
    if (wanted.orientation !== undefined) image = image.withMetadata({ orientation: wanted.orientation })
    if (wanted.cmyk === true) image = image.toColourspace("cmyk")
    if (wanted.deep === true) image = image.toColourspace("rgb16")
    switch (format) {
      case "png":
        return image.png({ progressive: interlaced }).toBuffer()
      case "jpeg":
        return image.jpeg({ progressive: interlaced }).toBuffer()
      case "gif":
        return image.gif({ effort: 1 }).toBuffer()
      case "webp":
        return image.webp({ lossless: true, effort: 1 }).toBuffer()
      case "tiff":
        return image.tiff({ compression: "deflate" }).toBuffer()
      case "avif":
        return image.avif({ effort: 0 }).toBuffer()
    }
  })

/** Format, size and frames of a picture, and the first and the last colour of its middle row. */
export const look = (bytes: Uint8Array) =>
  Effect.promise(async () => {
    const { format, height, orientation, pages = 1, width } = await sharp(bytes).metadata()
    const { data, info } = await sharp(bytes)
      .toColourspace("srgb")
      .removeAlpha()
      .raw()
      .toBuffer({ resolveWithObject: true })
    const at = (x: number, y: number) => {
      const from = (y * info.width + x) * info.channels
      const [r = 0, g = 0, b = 0] = data.subarray(from, from + 3)
      return r > 150 && g < 100 && b < 100 ? "red" : b > 130 && r < 100 && g < 100 ? "blue" : `${r} ${g} ${b}`
    }
    const [middle, centre] = [Math.floor(info.height / 2), Math.floor(info.width / 2)]
    return {
      format,
      size: `${width}x${height}`,
      frames: pages,
      orientation,
      across: [at(0, middle), at(info.width - 1, middle)],
      down: [at(centre, 0), at(centre, info.height - 1)]
    }
  })

/** A PNG whose header claims any size, with almost no data. */
export const claimed = (width: number, height: number): Buffer => {
  const chunk = (name: string, data: Buffer) => {
    const body = Buffer.concat([Buffer.from(name, "latin1"), data])
    const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)]
    length.writeUInt32BE(data.length)
    sum.writeUInt32BE(crc32(body))
    return Buffer.concat([length, body, sum])
  }
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  header.set([1, 0, 0, 0, 0], 8)
  const signature = Buffer.from("\x89PNG\r\n\x1a\n", "latin1")
  return Buffer.concat([
    signature,
    chunk("IHDR", header),
    chunk("IDAT", Buffer.alloc(8)),
    chunk("IEND", Buffer.alloc(0))
  ])
}
