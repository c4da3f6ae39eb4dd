/**
 * Compiles patterns of callers with RE2's syntax: the time of a match is linear in the text, whatever the pattern is.
 * Spec: SL-40, SL-52.
 */
import { Either } from "effect"
import { RE2JS } from "re2js"
import { InvalidOption } from "../domain/ShellError.ts"

/** Whether the pattern matches somewhere in the text. */
export type LinearPattern = (text: string) => boolean

export const longestPattern = 4_096

/** The time of a match is also linear in the size of the pattern's program, which repetitions multiply. */
const largestProgram = 20_000

const special = /[\\^$.|?*+()[\]{}]/

/** Compiles a pattern. `option` names it in the error. */
export const compile = (option: string, pattern: string): Either.Either<LinearPattern, InvalidOption> => {
  const refuse = (details: string) => new InvalidOption({ option, details })
  if (Buffer.byteLength(pattern) > longestPattern) {
    return Either.left(refuse(`the pattern is longer than ${longestPattern} bytes`))
  }
  if (!special.test(pattern)) return Either.right((text) => text.includes(pattern))
  return Either.flatMap(
    Either.try({
      try: () => RE2JS.compile(pattern),
      catch: (cause) => refuse(cause instanceof Error ? cause.message : String(cause))
    }),
    (compiled) =>
      compiled.programSize() > largestProgram
        ? Either.left(refuse("the pattern is too large: it repeats too much"))
        : Either.right((text: string) => compiled.test(text))
  )
}
