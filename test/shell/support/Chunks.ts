/** Cuts texts into chunks, and runs them through a stage of the output. */
import { FastCheck as fc } from "effect"

/** A stage of a stream. */
interface Stage<A> {
  readonly add: (chunk: A) => string
  readonly end: () => string
}

export const through = <A>(stage: Stage<A>, chunks: ReadonlyArray<A>): string =>
  chunks.map((chunk) => stage.add(chunk)).join("") + stage.end()

/** Cuts a text or bytes into chunks of these sizes, again and again. */
export const cut = <A extends { readonly length: number; slice(from: number, to: number): A }>(
  whole: A,
  lengths: ReadonlyArray<number>
): ReadonlyArray<A> => {
  const chunks: Array<A> = []
  let from = 0
  for (let index = 0; from < whole.length; index++) {
    const to = from + (lengths[index % lengths.length] ?? whole.length)
    chunks.push(whole.slice(from, to))
    from = to
  }
  return chunks
}

/** Sizes of chunks: single characters, or random. */
export const sizes: fc.Arbitrary<ReadonlyArray<number>> = fc.oneof(
  fc.constant([1]),
  fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 20 })
)
