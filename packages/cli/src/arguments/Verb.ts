/** Defines one verb of the command, or one action of a verb: its name, help, parser and effect. */
import type { Flag } from "./Flags.ts"

export interface Verb {
  readonly name: string
  /** One line, for the list of verbs. */
  readonly summary: string
  /** The words after the options, as help shows them: `[SESSION]`, `TEXT...`. */
  readonly words: string
  /** Paragraphs of help above the options. */
  readonly details: ReadonlyArray<string>
  readonly flags: ReadonlyArray<Flag<unknown>>
  /** What the verb's first word chooses, each with its own words and options. */
  readonly actions?: ReadonlyArray<Verb>
  /** Command lines, each with a description. */
  readonly examples: ReadonlyArray<readonly [line: string, does: string]>
  /** The parser and effect; their type is known only to the verb. */
  readonly command: unknown
}
