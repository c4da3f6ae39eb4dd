/** Pictures brought into the form that every provider takes: what stays, what is changed, and what is refused and why. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Either, Fiber, TestClock } from "effect"
import {
  commonPictures,
  loadDecoder,
  makePictures,
  type PictureDecoder,
  scaledEdge
} from "../../packages/core/src/picture/Pictures.ts"
import { claimed, look, picture, type Wanted } from "../support/Pictures.ts"

const decoding = makePictures(loadDecoder)
const without = makePictures(() => Promise.resolve(undefined))

const bytesLimit = Math.floor(commonPictures.base64Bytes / 4) * 3
const text = (value: string) => Buffer.from(value, "latin1")
const refusal = (result: Either.Either<unknown, { readonly reason: string }>) =>
  Either.isLeft(result) ? result.left.reason : "it was taken"

describe("with a decoder", () => {
  const staying: ReadonlyArray<readonly [what: string, wanted: Wanted]> = [
    ["a PNG", { width: scaledEdge, height: 3 }],
    ["a PNG with transparency", { alpha: true }],
    ["a JPEG", { format: "jpeg", height: scaledEdge }],
    ["a GIF", { format: "gif" }],
    ["a WebP", { format: "webp" }]
  ]
  it.live.each(staying)("PC-1: %s within the limits stays as it is, byte for byte", ([, wanted]) =>
    Effect.gen(function* () {
      const bytes = yield* picture(wanted)
      const fitted = yield* decoding.fit(bytes)
      assert.strictEqual(fitted.bytes, bytes)
      assert.strictEqual(fitted.mime, `image/${wanted.format ?? "png"}`)
      assert.isUndefined(fitted.note)
    })
  )

  const changing: ReadonlyArray<readonly [what: string, wanted: Wanted, as: string, note: RegExp]> = [
    ["a wide PNG", { width: 3_000, height: 30 }, "png 2000x20", /^scaled from 3000x30 to 2000x20 pixels$/],
    ["a high JPEG", { width: 30, height: 9_000, format: "jpeg" }, "jpeg 7x2000", /^scaled from 30x9000 to 7x2000/],
    ["one of one pixel's height", { width: 20_000, height: 1 }, "png 2000x1", /^scaled from 20000x1 to 2000x1/],
    ["an interlaced PNG", { width: 2_400, height: 1_200, interlaced: true }, "png 2000x1000", /2400x1200/],
    ["a progressive JPEG", { width: 2_400, height: 24, format: "jpeg", interlaced: true }, "jpeg 2000x20", /2400x24/],
    ["a PNG of 16 bits", { width: 4_000, height: 40, deep: true }, "png 2000x20", /4000x40/],
    ["a TIFF", { format: "tiff" }, "png 8x8", /^converted from TIFF to PNG$/],
    ["an AVIF", { format: "avif", width: 64, height: 64 }, "jpeg 64x64", /^converted from AVIF to JPEG$/],
    ["an animated GIF", { format: "gif", frames: 3 }, "png 8x8", /^converted from GIF to PNG, the first of 3 frames$/],
    [
      "an animated WebP",
      { format: "webp", frames: 4 },
      "png 8x8",
      /^converted from WEBP to PNG, the first of 4 frames$/
    ],
    ["a JPEG in CMYK", { format: "jpeg", cmyk: true, width: 40, height: 40 }, "jpeg 40x40", /^$/]
  ]
  it.live.each(changing)("PC-1: %s is brought into form, and what was done is said", ([, wanted, as, note]) =>
    Effect.gen(function* () {
      const fitted = yield* decoding.fit(yield* picture(wanted))
      const seen = yield* look(fitted.bytes)
      assert.strictEqual(`${seen.format} ${seen.size}`, as)
      assert.strictEqual(fitted.mime, `image/${seen.format}`)
      assert.match(fitted.note ?? "", note)
      assert.strictEqual(seen.frames, 1)
      assert.deepStrictEqual(seen.across, ["red", "blue"])
    })
  )

  it.live("PC-1: a picture that a camera turned is turned back, and nothing of the camera stays with it", () =>
    Effect.gen(function* () {
      const turned = yield* picture({ width: 64, height: 32, format: "jpeg", orientation: 6 })
      const fitted = yield* decoding.fit(turned)
      const seen = yield* look(fitted.bytes)
      assert.deepStrictEqual([seen.size, seen.orientation, seen.down], ["32x64", undefined, ["red", "blue"]])
      assert.isFalse(Buffer.from(fitted.bytes).includes("Exif"))
    })
  )

  it.live("PC-1: one with too many bytes becomes smaller in bytes first, then in pixels, and always fits", () =>
    Effect.gen(function* () {
      const noise = { width: 1_900, height: 1_900, noise: true } as const
      for (const wanted of [noise, { ...noise, alpha: true }, { ...noise, format: "webp" as const }]) {
        const bytes = yield* picture(wanted)
        assert.isAbove(bytes.length, bytesLimit)
        const fitted = yield* decoding.fit(bytes)
        assert.isAtMost(fitted.bytes.length, bytesLimit)
        assert.include(["1900x1900", "1000x1000"], (yield* look(fitted.bytes)).size)
        assert.strictEqual(fitted.mime, "image/jpeg")
      }
    })
  )

  it.live("PC-1: the same picture is brought into form as the same bytes", () =>
    Effect.gen(function* () {
      const bytes = yield* picture({ width: 2_500, height: 100, noise: true, format: "jpeg" })
      const [first, second] = [yield* decoding.fit(bytes), yield* decoding.fit(bytes)]
      assert.isTrue(Buffer.from(first.bytes).equals(second.bytes))
    })
  )

  const bombs: ReadonlyArray<readonly [width: number, height: number]> = [
    [50_000, 50_000],
    [2_000_000_000, 1],
    [10_001, 10_000]
  ]
  it.live.each(bombs)("PC-4: one that claims %i by %i pixels is refused before it is decoded", ([width, height]) =>
    Effect.gen(function* () {
      const reason = refusal(yield* Effect.either(decoding.fit(claimed(width, height))))
      if (width < 1_000_000) {
        assert.strictEqual(reason, `it has ${width}x${height} pixels, and at most 100,000,000 are decoded`)
      } else assert.match(reason, /damaged|pixels/)
    })
  )

  const formats = ["png", "jpeg", "gif", "webp", "tiff", "avif"] as const
  it.live.each(formats)("PC-5: a %s that is cut off anywhere is refused, or as it was", (format) =>
    Effect.gen(function* () {
      const whole = yield* picture({ format, width: 64, height: 64, noise: true })
      for (const part of [0.1, 0.3, 0.5, 0.7, 0.9, 0.97]) {
        const cut = whole.subarray(0, Math.max(16, Math.floor(whole.length * part)))
        assert.match(refusal(yield* Effect.either(decoding.fit(cut))), /damaged or cut off|not a picture/, `${part}`)
      }
    })
  )

  it.live("PC-5: one whose data is another's behind the header is refused", () =>
    Effect.gen(function* () {
      const whole = yield* picture({ width: 64, height: 64, noise: true })
      const spoilt = Buffer.from(whole)
      spoilt.fill(0x55, 100, whole.length - 40)
      assert.include(refusal(yield* Effect.either(decoding.fit(spoilt))), "damaged or cut off")
      assert.include(refusal(yield* Effect.either(decoding.fit(claimed(8, 8)))), "damaged or cut off")
    })
  )

  const unknown: ReadonlyArray<readonly [what: string, bytes: Buffer, reason: RegExp]> = [
    ["a HEIC", text("\0\0\0\x18ftypheic\0\0\0\0mif1heic and so on"), /format cannot be decoded/],
    ["a BMP", Buffer.concat([text("BM\x46\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0"), Buffer.alloc(60)]), /cannot be decoded/],
    ["a JPEG XL", text("\0\0\0\x0cJXL \r\n\x87\n and so on"), /cannot be decoded/],
    [
      "an SVG",
      text('<svg xmlns="http://www.w3.org/2000/svg"><image href="file:///etc/passwd"/></svg>'),
      /not a picture/
    ],
    ["a text", text("BMW and more text than that of a header of a bitmap"), /not a picture/],
    ["nothing", Buffer.alloc(0), /not a picture/]
  ]
  it.live.each(unknown)("PC-2: %s is refused with the reason", ([, bytes, reason]) =>
    Effect.gen(function* () {
      assert.match(refusal(yield* Effect.either(decoding.fit(bytes))), reason)
    })
  )

  it.live("PC-3: a file over 32 MiB is refused with the limit, and not looked at", () =>
    Effect.gen(function* () {
      const bytes = Buffer.concat([claimed(8, 8), Buffer.alloc(32 * 1024 * 1024)])
      assert.include(refusal(yield* Effect.either(decoding.fit(bytes))), "at most 33,554,432 bytes are read")
    })
  )
})

describe("one at a time", () => {
  it.effect(
    "PC-4: the next picture is decoded when the one before is done, also when nobody waits for that any more",
    () =>
      Effect.gen(function* () {
        const [began, gate, second] = [
          yield* Deferred.make<void>(),
          yield* Deferred.make<void>(),
          yield* Deferred.make<void>()
        ]
        const decoded = { width: 1, height: 1, frames: 1, encoded: undefined }
        const running: Array<number> = []
        const gated: PictureDecoder = {
          decode: (bytes) =>
            Effect.gen(function* () {
              running.push(bytes.length)
              yield* Deferred.succeed(running.length === 1 ? began : second, undefined)
              if (running.length === 1) yield* Deferred.await(gate)
              return decoded
            })
        }
        const pictures = makePictures(() => Promise.resolve(gated))
        const first = yield* Effect.fork(pictures.fit(claimed(1, 1)))
        yield* Deferred.await(began)
        const next = yield* Effect.fork(pictures.fit(claimed(1, 1)))
        yield* Fiber.interrupt(first)
        // Every other fiber has gone as far as it can.
        yield* TestClock.adjust("1 minute")
        assert.lengthOf(running, 1)
        yield* Deferred.succeed(gate, undefined)
        yield* Deferred.await(second)
        assert.strictEqual((yield* Fiber.join(next)).mime, "image/png")
      })
  )
})

describe("without a decoder", () => {
  it.live("PC-2: what every provider takes is taken as it is", () =>
    Effect.gen(function* () {
      for (const format of ["png", "jpeg", "gif", "webp"] as const) {
        const bytes = yield* picture({ format, width: 3_000, height: 30 })
        assert.deepStrictEqual(yield* without.fit(bytes), { bytes, mime: `image/${format}`, note: undefined })
      }
    })
  )

  const refused: ReadonlyArray<readonly [what: string, wanted: Wanted, reason: RegExp]> = [
    ["a long edge", { width: 8_001, height: 8 }, /it has 8001x8 pixels, and providers take 8000 along an edge/],
    ["a long JPEG", { width: 8, height: 8_001, format: "jpeg" }, /8x8001 pixels, and providers take 8000/],
    ["many bytes", { width: 1_900, height: 1_900, noise: true }, /bytes, and providers take 3,932,160 bytes/],
    ["a TIFF", { format: "tiff" }, /it is a TIFF picture, and providers take PNG, JPEG, GIF, WEBP/],
    ["an AVIF", { format: "avif" }, /it is a AVIF picture/],
    ["an animated GIF", { format: "gif", frames: 2 }, /it is animated/],
    ["an animated WebP", { format: "webp", frames: 2 }, /it is animated/]
  ]
  it.live.each(refused)("PC-2: %s is refused with the limit, and with what to do", ([, wanted, reason]) =>
    Effect.gen(function* () {
      const words = refusal(yield* Effect.either(without.fit(yield* picture(wanted))))
      assert.match(words, reason)
      assert.include(words, 'install the package "sharp"')
    })
  )

  it.live("PC-5: one that is cut off is refused", () =>
    Effect.gen(function* () {
      for (const format of ["png", "jpeg", "gif", "webp"] as const) {
        const whole = yield* picture({ format, width: 64, height: 64, noise: true })
        for (const part of [0.1, 0.5, 0.9]) {
          const cut = whole.subarray(0, Math.floor(whole.length * part))
          assert.match(refusal(yield* Effect.either(without.fit(cut))), /damaged or cut off/, `${format} ${part}`)
        }
      }
    })
  )
})
