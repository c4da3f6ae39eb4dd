/**
 * Checks a prompt's content and size: a prompt is not blank, and not too large, since every request reads the prompt's
 * row of the log again. Referenced files are bounded where they are read (PX-14). Pure. Spec: IB-31, IB-32 in
 * specs/sessions.md.
 */
import { Either } from "effect"
import { InvalidInput } from "@daybook/log/domain/InvalidInput"
import type { PromptInput } from "@daybook/log/domain/Values"
import { excessOf } from "../support/Excess.ts"
import { isBlank } from "@daybook/log/support/Text"

/** Maximum bytes of the whole prompt as JSON. */
export const maximumBytes = 32 * 1024 * 1024
/** Maximum characters of its text, and of its system text. */
export const maximumText = 1024 * 1024
export const maximumSystem = 256 * 1024

const refuse = (field: string, details: string) => Either.left(new InvalidInput({ field, details }))

const tooLong = (field: string, length: number, allowed: number) =>
  refuse(field, `it has ${length} characters, and at most ${allowed} are allowed`)

/** Undefined if the prompt has no JSON form: fields of unknown type may hold any value. */
const jsonOf = (prompt: PromptInput): string | undefined => {
  try {
    return JSON.stringify(prompt)
  } catch {
    return undefined
  }
}

/** Fails with the field that is too large, and the limit. */
export const checkBounds = (prompt: PromptInput): Either.Either<void, InvalidInput> => {
  const { system = "", text } = prompt
  if (text.length > maximumText) return tooLong("prompt.text", text.length, maximumText)
  if (system.length > maximumSystem) return tooLong("prompt.system", system.length, maximumSystem)
  // All other fields have a form, and few levels.
  const excess = excessOf(prompt.output)
  if (excess !== undefined) return refuse("prompt.output", `it is ${excess}`)
  const json = jsonOf(prompt)
  if (json === undefined) return refuse("prompt", "it cannot be written as JSON")
  // A character has three bytes at most. No `Buffer`: the check runs in browsers too.
  const bytes = json.length * 3 > maximumBytes ? new TextEncoder().encode(json).length : 0
  return bytes > maximumBytes
    ? refuse("prompt", `as JSON it has ${bytes} bytes with its files, and at most ${maximumBytes} are allowed`)
    : Either.void
}

/** Fails if the prompt is blank: providers reject a message without a visible character. */
export const checkSaid = ({
  agents = [],
  files = [],
  references = [],
  text
}: PromptInput): Either.Either<void, InvalidInput> =>
  isBlank(text) && agents.length + files.length + references.length === 0
    ? refuse("prompt.text", "it is blank: write something, or attach a file")
    : Either.void
