/**
 * Puts the pictures of blobs into items. The record keeps the reference, so that an export writes it again. Spec: FM-27 in
 * specs/formats.md.
 */
import { dirname, join } from "node:path"
import { FileSystem } from "@effect/platform/FileSystem"
import { Effect, Option } from "effect"
import { type BlobHash, hashOf as digestOf, parse } from "../blob/BlobRef.ts"
import type * as Conversation from "../conversation/Conversation.ts"

/** Finds the bytes of a blob; none if it is missing. */
export type Lookup<E, R> = (hash: BlobHash) => Effect.Effect<Option.Option<Uint8Array>, E, R>

/**
 * The blobs that belong to a log in its tool's own folders: `sessions/FOLDER/LOG` and `blobs/HASH`. They are only read; a
 * blob that is missing, cannot be read or has other bytes is none.
 */
export const besideLog = (path: string): Lookup<never, FileSystem> => {
  const folder = join(dirname(path), "..", "..", "blobs")
  return (hash) =>
    Effect.flatMap(FileSystem, (files) => Effect.option(files.readFile(join(folder, hash)))).pipe(
      Effect.map(Option.filter((bytes) => digestOf(bytes) === hash))
    )
}

type Part = Conversation.Content[number]

const hashOf = (part: Part): BlobHash | undefined => (part.type === "media" ? parse(part.data) : undefined)

/** Whether the piece refers to a blob. */
export const refersToBlob = (piece: Conversation.Piece): boolean =>
  "content" in piece && piece.content.some((part) => hashOf(part) !== undefined)

/** The piece with its pictures. A missing picture becomes a text and a problem. */
export const withPictures =
  <E, R>(lookup: Lookup<E, R>) =>
  (piece: Conversation.Piece): Effect.Effect<ReadonlyArray<Conversation.Piece>, E, R> =>
    Effect.gen(function* () {
      if (!("content" in piece) || !refersToBlob(piece)) return [piece]
      const problems: Array<Conversation.Problem> = []
      const content: Array<Part> = []
      for (const part of piece.content) {
        const hash = hashOf(part)
        const bytes = hash === undefined ? Option.none() : yield* lookup(hash)
        if (part.type === "text" || hash === undefined) content.push(part)
        else if (Option.isSome(bytes)) content.push({ ...part, data: Buffer.from(bytes.value).toString("base64") })
        else {
          content.push({ type: "text", text: `[the picture ${hash} is missing]` })
          const details = `The picture ${hash} is not in the blob store; a text says so.`
          problems.push({ _tag: "Problem", place: piece.place, kind: "missing-picture", details })
        }
      }
      return [...problems, { ...piece, content }]
    })
