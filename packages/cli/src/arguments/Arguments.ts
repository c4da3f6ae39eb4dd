/**
 * Checks the command line before it is parsed. It refuses unknown and repeated options and missing values, which the parser
 * would read as prompt text, and moves options before the text. Pure. Spec: CL-1, CL-2 in specs/cli.md.
 */
import { Either } from "effect"
import { UsageError } from "../support/Errors.ts"
import { didYouMean } from "../support/Nearest.ts"
import type { Flag } from "./Flags.ts"

type OptionSpec = Pick<Flag<unknown>, "name" | "value" | "repeated">

/** A whole word that looks like an option; a quoted sentence that begins with a dash is text. */
export const isOption = (word: string): boolean => /^--?[A-Za-z][\w-]*(?:=|$)/.test(word)

/**
 * Checks the words after a command's name and moves its options to the front: options, `--`, then the other words in
 * order. Words after a `--` are never options.
 */
export const arrange = (
  command: string,
  words: ReadonlyArray<string>,
  specs: ReadonlyArray<OptionSpec>
): Either.Either<ReadonlyArray<string>, UsageError> => {
  const options: Array<string> = []
  const given = new Set<string>()
  const rest: Array<string> = []
  const refuse = (message: string) => Either.left(new UsageError({ message }))
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? ""
    if (word === "--") {
      rest.push(...words.slice(at + 1))
      break
    }
    if (!isOption(word)) {
      rest.push(word)
      continue
    }
    const equals = word.indexOf("=")
    const name = equals < 0 ? word : word.slice(0, equals)
    const spec = specs.find((known) => `--${known.name}` === name)
    if (spec === undefined) {
      const near = didYouMean(
        name,
        specs.map((known) => `--${known.name}`)
      )
      return refuse(`${command} has no option ${name}${near} (text that starts with a dash goes after --)`)
    }
    if (given.has(name) && spec.repeated !== true) return refuse(`${name} is given twice`)
    given.add(name)
    if (spec.value === undefined) {
      if (equals >= 0) return refuse(`${name} takes no value`)
      options.push(name)
      continue
    }
    const value = equals >= 0 ? word.slice(equals + 1) : words[++at]
    if (value === undefined || (equals < 0 && value === "--")) return refuse(`${name} needs a value`)
    options.push(name, value)
  }
  return Either.right(rest.length === 0 ? options : [...options, "--", ...rest])
}
