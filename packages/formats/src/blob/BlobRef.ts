/** Defines references to blobs: `blob:sha256:` and the digest of the blob's bytes in hex. Spec: FM-82. */
import { createHash } from "node:crypto"
import { Schema } from "effect"

/** The SHA-256 of a blob, in lower-case hex. It names the blob's file, so nothing else may reach a path. */
export const BlobHash = Schema.String.pipe(Schema.pattern(/^[0-9a-f]{64}$/), Schema.brand("BlobHash"))
export type BlobHash = typeof BlobHash.Type

const prefix = "blob:sha256:"
/** Characters of a reference. */
export const refLength = prefix.length + 64
const pattern = /^blob:sha256:([0-9a-f]{64})$/

export const hashOf = (bytes: Uint8Array): BlobHash =>
  BlobHash.make(createHash("sha256").update(bytes).digest("hex"), { disableValidation: true })

export const refOf = (hash: BlobHash): string => `${prefix}${hash}`

/** The blob that a text refers to; undefined if the text is not exactly a reference. */
export const parse = (text: string): BlobHash | undefined => {
  const hash = pattern.exec(text)?.[1]
  return hash === undefined ? undefined : BlobHash.make(hash, { disableValidation: true })
}

/** Every reference in a text, such as a line of a log, wherever it stands. */
export const allIn = (text: string): ReadonlyArray<BlobHash> =>
  text.includes(prefix)
    ? [...text.matchAll(/blob:sha256:([0-9a-f]{64})/g)].map(([, hash]) =>
        BlobHash.make(hash ?? "", { disableValidation: true })
      )
    : []

/** Whether a text is a digest. */
export const isHash: (text: string) => text is BlobHash = Schema.is(BlobHash)
