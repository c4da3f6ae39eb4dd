/** Defines what a verb reads from its command line: options, with their lines of help, and words. Spec: CL-1..CL-3 in specs/cli.md. */
import { Effect } from "effect"
import { UsageError } from "../support/Errors.ts"

export interface Flag<A> {
  readonly name: string
  /** Name of its value in help; absent for an option without a value. */
  readonly value?: string
  /** It may be given more than once. */
  readonly repeated?: true
  readonly about: string
  /** Reads the values on the command line, in order; an option without a value gives "". */
  readonly read: (given: ReadonlyArray<string>) => Effect.Effect<A, UsageError>
}

export interface Words<A> {
  /** Their name in errors. */
  readonly placeholder: string
  /** How many it takes. */
  readonly most: number
  /** The value of a missing word, or the error for it, which may name the whole line; default: an error with the placeholder. */
  readonly missing?: (path: string, line: string) => Effect.Effect<A, UsageError>
  /** Undefined: a word is missing. */
  readonly take: (words: ReadonlyArray<string>) => { readonly taken: A } | undefined
}

export const one = (placeholder: string): Words<string> => ({
  placeholder,
  most: 1,
  take: ([word]) => (word === undefined ? undefined : { taken: word })
})

/** One word, or none. */
export const optional = (placeholder: string): Words<string | undefined> => ({
  placeholder,
  most: 1,
  take: ([word]) => ({ taken: word })
})

export const many = (placeholder: string): Words<ReadonlyArray<string>> => ({
  placeholder,
  most: Infinity,
  take: (words) => ({ taken: words })
})

/** An option without a value. */
export const toggle = (name: string, about: string): Flag<boolean> => ({
  name,
  about,
  read: (given) => Effect.succeed(given.length > 0)
})

/** Checks a value; the error names the expected form. */
type Decode<A> = (text: string) => Effect.Effect<A, string>

const decoded = <A>(name: string, decode: Decode<A>, text: string): Effect.Effect<A, UsageError> =>
  Effect.mapError(
    decode(text),
    (expected) => new UsageError({ message: `--${name}: expected ${expected}, got "${text}"` })
  )

/** An optional value. */
export const value = <A = string>(
  name: string,
  valueName: string,
  about: string,
  decode: Decode<A>
): Flag<A | undefined> => ({
  name,
  value: valueName,
  about,
  read: ([text]) => (text === undefined ? Effect.succeed(undefined) : decoded(name, decode, text))
})

/** An option that may be repeated; its values in order. */
export const repeated = <A = string>(
  name: string,
  valueName: string,
  about: string,
  decode: Decode<A>
): Flag<ReadonlyArray<A>> => ({
  name,
  value: valueName,
  repeated: true,
  about,
  read: Effect.forEach((text) => decoded(name, decode, text))
})

/** Any text but the empty one. */
export const text = (name: string, valueName: string, about: string) =>
  value(name, valueName, about, (given) => (given === "" ? Effect.fail(valueName) : Effect.succeed(given)))

/** A whole number from `least` to `most`. */
export const integer = (name: string, valueName: string, about: string, least: number, most = Infinity) =>
  value(name, valueName, about, (given) => {
    const number = /^-?\d+$/.test(given) ? Number(given) : Number.NaN
    return Number.isSafeInteger(number) && number >= least && number <= most
      ? Effect.succeed(number)
      : Effect.fail(most === Infinity ? `a whole number, at least ${least}` : `a whole number from ${least} to ${most}`)
  })

/** `others` are further spellings, which help does not list. */
export const choice = <const Choice extends string>(
  name: string,
  choices: ReadonlyArray<Choice>,
  about: string,
  others: Readonly<Record<string, Choice>> = {}
) =>
  value<Choice>(name, choices.join("|"), about, (given) => {
    const found =
      choices.find((candidate) => candidate === given) ?? (Object.hasOwn(others, given) ? others[given] : undefined)
    return found === undefined ? Effect.fail(anyOf(choices)) : Effect.succeed(found)
  })

/** `a, b or c`. */
const anyOf = (choices: ReadonlyArray<string>): string => {
  const [last = "", ...others] = choices.toReversed()
  return others.length === 0 ? last : `${others.toReversed().join(", ")} or ${last}`
}

export const noReasoning = toggle("no-reasoning", "hide the model's reasoning")

export const json = toggle("json", "print JSON, one object per line")

/** For verbs that run sessions. */
export const trust = toggle("trust", "trust the project, for this command only")
