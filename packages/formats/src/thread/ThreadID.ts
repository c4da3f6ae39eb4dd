/** Defines the ids of threads: ULIDs, checked before a path is built from one. Spec: FM-100 (TH-1, S7.8). */
import { Either, Schema } from "effect"
import { clip } from "@daybook/log/support/Issues"

/** A ULID in its canonical, upper-case form. It names a folder. */
export const ThreadID = Schema.String.pipe(Schema.pattern(/^[0-9A-HJKMNP-TV-Z]{26}$/), Schema.brand("ThreadID"))
export type ThreadID = typeof ThreadID.Type

/** The text is not an id of a thread. Nothing was read. An HTTP server answers 400. */
export class InvalidThreadID extends Schema.TaggedError<InvalidThreadID>("@daybook/formats/InvalidThreadID")(
  "InvalidThreadID",
  { id: Schema.String }
) {
  override get message() {
    return `${JSON.stringify(clip(this.id))} is not a thread's id: expected 26 digits and upper-case letters except I, L, O and U`
  }
}

const isThreadID = Schema.is(ThreadID)

/** Checks an id that came from outside. */
export const check = (id: string): Either.Either<ThreadID, InvalidThreadID> =>
  isThreadID(id) ? Either.right(id) : Either.left(new InvalidThreadID({ id }))

const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

/** The time of a ULID in milliseconds since the epoch: its first ten characters. */
export const timeOf = (id: ThreadID): number =>
  id
    .slice(0, 10)
    .split("")
    .reduce((time, character) => time * 32 + alphabet.indexOf(character), 0)
