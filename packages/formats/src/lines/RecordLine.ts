/** Makes the line of a record, unless readers would skip the line. Pure. Spec: FM-423 in specs/formats.md. */
import { Either, Schema } from "effect"
import { defaultMaxLineBytes, isDeeper, maxDepth } from "./JsonLines.ts"

/** The record would be lost: readers of the file skip it. Nothing was written. */
export class RecordRefused extends Schema.TaggedError<RecordRefused>("@daybook/formats/RecordRefused")(
  "RecordRefused",
  { details: Schema.String }
) {
  override get message() {
    return `the record was not written, because it could not be read back: ${this.details}`
  }
}

/** Refuses values that are nested too deeply, also those without an end, before anything walks them. */
export const shallow = <A>(record: A): Either.Either<A, RecordRefused> =>
  isDeeper(record, maxDepth)
    ? Either.left(new RecordRefused({ details: `its values are nested deeper than ${maxDepth} levels` }))
    : Either.right(record)

/** The line of the record, without a newline. */
export const recordLine = (record: object): Either.Either<string, RecordRefused> =>
  Either.gen(function* () {
    yield* shallow(record)
    const line = yield* Either.try({
      try: () => JSON.stringify(record),
      catch: (cause) => new RecordRefused({ details: `it cannot be written as JSON: ${String(cause)}` })
    })
    const sizeBytes = Buffer.byteLength(line)
    if (sizeBytes <= defaultMaxLineBytes) return line
    const details = `its line has ${sizeBytes} bytes; the limit is ${defaultMaxLineBytes}`
    return yield* Either.left(new RecordRefused({ details }))
  })
