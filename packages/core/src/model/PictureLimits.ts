/**
 * What providers take as a picture, and the form that every one of them takes. A session may switch its model at any
 * turn, and what was shown once is shown again for ever; so a picture is brought into the common form when it comes, not
 * for the model of the moment. Pure data. Spec: PC-2 in specs/pictures.md.
 */

/** The limits of one provider, as it documents them. */
export interface PictureLimits {
  /** Bytes of one picture in base64, which is what requests are measured in. */
  readonly base64Bytes: number
  /** Pixels of its longer edge. */
  readonly edge: number
  readonly formats: ReadonlyArray<string>
  /** Whether one with several frames is taken. */
  readonly animated: boolean
}

const common = ["image/png", "image/jpeg", "image/gif", "image/webp"]
const mib = 1024 * 1024

/** By API. Where a provider states no edge, none is refused. */
export const providerPictures = {
  /** Takes 8,000 pixels, but 2,000 in a request with more than 20 pictures, and scales down to 1,568 by itself. */
  anthropic: { base64Bytes: 5 * mib, edge: 8_000, formats: common, animated: true },
  openai: { base64Bytes: 20 * mib, edge: Infinity, formats: common, animated: false }
} as const satisfies Readonly<Record<string, PictureLimits>>

const all: ReadonlyArray<PictureLimits> = Object.values(providerPictures)

/** What every provider takes. */
export const commonPictures: PictureLimits = {
  base64Bytes: Math.min(...all.map(({ base64Bytes }) => base64Bytes)),
  edge: Math.min(...all.map(({ edge }) => edge)),
  formats: common.filter((format) => all.every(({ formats }) => formats.includes(format))),
  animated: all.every(({ animated }) => animated)
}

/** The edge that a picture is scaled to: no provider refuses it in any request, and none is shown more by more. */
export const scaledEdge = 2_000
