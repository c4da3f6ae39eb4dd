/** Prepares texts of sessions for publication: without secrets and control characters. Pure. Spec: DI-24, DI-25. */
import { redactSecrets } from "@daybook/log/support/Redaction"

/** Discord drops some control characters; without them a message comes back as it was sent. */
const controls = /(?![\t\n])[\p{Cc}\u2028\u2029\ufeff]/gu

/** A half of a character, which no JSON of Discord can hold. */
const halves = /\p{Surrogate}/gu

/** A whole text. `known` are the values of secrets. */
export const publishable = (text: string, known: ReadonlyArray<string>): string =>
  redactSecrets(text.replaceAll("\r\n", "\n").replaceAll(halves, "\ufffd"), known).replaceAll(controls, "")

const privateKey = /-----BEGIN [A-Z ]*PRIVATE KEY/

/** The part of a growing text that no later character can turn into a secret: whole lines, and no open key. */
export const publishableSoFar = (text: string, known: ReadonlyArray<string>): string => {
  const lines = text.slice(0, text.lastIndexOf("\n") + 1)
  const key = lines.search(privateKey)
  const isOpen = key >= 0 && !/-----END [A-Z ]*PRIVATE KEY/.test(lines.slice(key))
  return publishable(isOpen ? lines.slice(0, key) : lines, known)
}

/** At most so many characters, and no half of one. */
export const clip = (text: string, most: number): string =>
  text.length <= most ? text : `${text.slice(0, most - 1).replace(/[\ud800-\udbff]$/, "")}…`

/** One line of at most so many characters, without Markdown. */
export const line = (text: string, most: number): string =>
  clip(text.replaceAll(/\s+/g, " ").replaceAll("`", "'").trim(), most)
