/**
 * The providers' limits for pictures, and the limits that satisfy all of them. A session may switch models at any turn
 * and shows its pictures again in every request, so a picture is fitted to the common limits once, not to the current
 * model. Pure data. Spec: PC-2 in specs/pictures.md.
 */

/** The documented limits of one provider. */
export interface PictureLimits {
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
export const providerPictures = {
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
