/** Defines the options of the commands: parsing and help line. Spec: CL-1..CL-3 in specs/cli.md. */
import * as HelpDoc from "@effect/cli/HelpDoc"
import * as Options from "@effect/cli/Options"
import * as ValidationError from "@effect/cli/ValidationError"
import { Effect, Option } from "effect"

/** An option with its line of help. */
export interface Flag<A> {
  readonly name: string
  /** Name of its value in help; absent for an option without a value. */
  readonly value?: string
  /** It may be given more than once. */
  readonly repeated?: true
  readonly about: string
  readonly options: Options.Options<A>
}

/** An option without a value. */
export const toggle = (name: string, about: string): Flag<boolean> => ({
  name,
  about,
  options: Options.boolean(name).pipe(Options.withDescription(about))
})

/** An optional value. `decode` checks it, and its error names the expected form. */
export const value = <A = string>(
  name: string,
  valueName: string,
  about: string,
  decode: (text: string) => Effect.Effect<A, string>
): Flag<Option.Option<A>> => ({
  name,
  value: valueName,
  about,
  options: Options.text(name).pipe(
    Options.withPseudoName(valueName),
    Options.withDescription(about),
    Options.mapEffect((text) =>
      Effect.mapError(decode(text), (expected) =>
        ValidationError.invalidValue(HelpDoc.p(`--${name}: expected ${expected}, got "${text}"`))
      )
    ),
    Options.optional
  )
})

/** An option that may be repeated; its values in order. */
export const repeated = <A = string>(
  name: string,
  valueName: string,
  about: string,
  decode: (text: string) => Effect.Effect<A, string>
): Flag<ReadonlyArray<A>> => ({
  name,
  value: valueName,
  repeated: true,
  about,
  options: Options.text(name).pipe(
    Options.withPseudoName(valueName),
    Options.withDescription(about),
    Options.repeated,
    Options.mapEffect(
      Effect.forEach((text) =>
        Effect.mapError(decode(text), (expected) =>
          ValidationError.invalidValue(HelpDoc.p(`--${name}: expected ${expected}, got "${text}"`))
        )
      )
    )
  )
})

/** Any text but the empty one. */
export const text = (name: string, valueName: string, about: string) =>
  value(name, valueName, about, (given) => (given === "" ? Effect.fail(valueName) : Effect.succeed(given)))

/** A whole number, at least `least`. */
export const integer = (name: string, valueName: string, about: string, least: number) =>
  value(name, valueName, about, (given) => {
    const number = /^-?\d+$/.test(given) ? Number(given) : Number.NaN
    return Number.isSafeInteger(number) && number >= least
      ? Effect.succeed(number)
      : Effect.fail(`a whole number, at least ${least}`)
  })

/** One of a few words. */
export const choice = <const Choice extends string>(name: string, choices: ReadonlyArray<Choice>, about: string) =>
  value<Choice>(name, choices.join("|"), about, (given) => {
    const found = choices.find((candidate) => candidate === given)
    return found === undefined ? Effect.fail(choices.join(" or ")) : Effect.succeed(found)
  })

export const noReasoning = toggle("no-reasoning", "hide the model's reasoning")

export const json = toggle("json", "print JSON, one object per line")

/** For verbs that run sessions. */
export const trust = toggle("trust", "trust the project, for this command only")
