/**
 * Defines a verb of the command, or an action of a verb, and reads its command line. Unknown and repeated options, missing
 * values, and missing and surplus words are refused. Spec: CL-1, CL-2 in specs/cli.md.
 */
import { Effect, Either } from "effect"
import { oneLine } from "../render/Plain.ts"
import { UsageError } from "../support/Errors.ts"
import { didYouMean } from "../support/Nearest.ts"
import type { Output } from "../terminal/Output.ts"
import type { Flag, Words } from "./Flags.ts"

/** What help shows of a verb. */
interface Described {
  readonly name: string
  /** One line, for the list of verbs. */
  readonly summary: string
  /** The words after the options, as help shows them: `[SESSION]`, `TEXT...`. */
  readonly words: string
  /** Paragraphs of help above the options. */
  readonly details: ReadonlyArray<string>
  /** Command lines, each with a description. */
  readonly examples: ReadonlyArray<readonly [line: string, does: string]>
  /** Whether it works over a server, in place of the database (CL-303). */
  readonly overServer?: boolean
}

export interface Verb extends Described {
  readonly flags: ReadonlyArray<Flag<unknown>>
  /** What the verb's first word chooses, each with its own words and options. */
  readonly actions?: ReadonlyArray<Verb>
  /** Runs the words after `path`, which are the verb's name and that of its action. */
  readonly run: (path: string, words: ReadonlyArray<string>) => Effect.Effect<void, unknown, Output>
}

/** Options, in the order of help, and words, in the order of the command line. */
type Fields = Readonly<Record<string, Flag<unknown> | Words<unknown>>>

export type FieldValues<F extends Fields> = {
  readonly [Name in keyof F]: F[Name] extends Flag<infer A> | Words<infer A> ? A : never
}

const isFlag = (field: Flag<unknown> | Words<unknown>): field is Flag<unknown> => "read" in field

export const verb = <const F extends Fields>({
  given: fields,
  run,
  ...described
}: Described & {
  readonly given: F
  readonly run: (given: FieldValues<F>) => Effect.Effect<void, unknown, Output>
}): Verb => {
  const flags = Object.values(fields).filter(isFlag)
  return {
    ...described,
    flags,
    run: Effect.fnUntraced(function* (path, words) {
      const line = yield* divide(`daybook ${path}`, words, flags)
      // Each field reads its own type; an object made from entries cannot say so.
      yield* run((yield* read(path, line, fields)) as FieldValues<F>)
    })
  }
}

export const group = (described: Described & { readonly actions: ReadonlyArray<Verb> }): Verb => ({
  ...described,
  flags: [],
  run: () => Effect.void
})

/** The values of options, and the words, of a command line. */
type Line = { readonly options: ReadonlyMap<string, ReadonlyArray<string>>; readonly words: ReadonlyArray<string> }

/** Options first, so that a malformed value is reported before a missing word. */
const read = Effect.fnUntraced(function* (path: string, { options, words }: Line, fields: Fields) {
  const values: Record<string, unknown> = {}
  for (const [name, field] of Object.entries(fields)) {
    if (isFlag(field)) values[name] = yield* field.read(options.get(field.name) ?? [])
  }
  const required = Object.values(fields).flatMap((field) =>
    !isFlag(field) && field.take([]) === undefined ? [field.placeholder] : []
  )
  let rest = words
  for (const [name, field] of Object.entries(fields)) {
    if (isFlag(field)) continue
    const found = field.take(rest)
    const whole = `daybook ${path} ${required.join(" ")}`
    const lacks = `${path}: ${field.placeholder} is missing: ${whole}`
    const missing = field.missing?.(path, whole) ?? new UsageError({ message: lacks })
    values[name] = found === undefined ? yield* missing : found.taken
    rest = rest.slice(field.most)
  }
  const [extra] = rest
  return extra === undefined ? values : yield* surplus(path, extra)
})

export const surplus = (before: string, word: string) =>
  new UsageError({ message: `${before}: unexpected argument "${oneLine(word, 40)}"` })

/** A whole word that looks like an option; a quoted sentence that begins with a dash is text. */
const isOption = (word: string): boolean => /^--?[A-Za-z][\w-]*(?:=|$)/.test(word)

/** Divides the words after a command's name. Options may stand anywhere before a `--`. Pure. */
export const divide = (
  command: string,
  words: ReadonlyArray<string>,
  flags: ReadonlyArray<Pick<Flag<unknown>, "name" | "value" | "repeated">>
): Either.Either<Line, UsageError> => {
  const options = new Map<string, Array<string>>()
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
    const flag = flags.find((known) => `--${known.name}` === name)
    if (flag === undefined) {
      const known = flags.map((each) => `--${each.name}`)
      // Suggests the first option with that initial.
      const letter = /^-[A-Za-z]$/.test(name) ? known.find((each) => each.startsWith(`-${name}`)) : undefined
      const near = letter === undefined ? didYouMean(name, known) : `; did you mean ${letter}?`
      return refuse(`${command} has no option ${name}${near} (text that starts with a dash goes after --)`)
    }
    const given = options.get(flag.name) ?? []
    if (given.length > 0 && flag.repeated !== true) return refuse(`${name} is given twice`)
    options.set(flag.name, given)
    if (flag.value === undefined) {
      if (equals >= 0) return refuse(`${name} takes no value`)
      given.push("")
      continue
    }
    const value = equals >= 0 ? word.slice(equals + 1) : words[++at]
    if (value === undefined || (equals < 0 && value === "--")) return refuse(`${name} needs a value`)
    given.push(value)
  }
  return Either.right({ options, words: rest })
}

type Chosen = { readonly action: Verb; readonly rest: ReadonlyArray<string> }

/** The index of the action: the first word that is neither an option of an action nor its value. */
const placeOf = (words: ReadonlyArray<string>, actions: ReadonlyArray<Verb>): number => {
  const withValue = new Set(
    actions.flatMap(({ flags }) => flags.filter(({ value }) => value !== undefined).map(({ name }) => `--${name}`))
  )
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? ""
    if (word === "--") return at + 1
    if (!isOption(word)) return at
    if (withValue.has(word)) at++
  }
  return words.length
}

/** Finds the action that the words after a verb name. */
export const choose = (
  verb: string,
  actions: ReadonlyArray<Verb>,
  words: ReadonlyArray<string>
): Either.Either<Chosen, UsageError> => {
  const names = actions.map(({ name }) => name)
  const at = placeOf(words, actions)
  const word = words[at]
  if (word === undefined) {
    return Either.left(new UsageError({ message: `say what to do: daybook ${verb} ${names.join(", ")}` }))
  }
  const action = actions.find(({ name }) => name === word)
  if (action !== undefined) return Either.right({ action, rest: words.toSpliced(at, 1) })
  const advice = didYouMean(word, names) || `; use ${names.join(", ")}`
  return Either.left(new UsageError({ message: `there is no "${verb} ${oneLine(word, 40)}"${advice}` }))
}
