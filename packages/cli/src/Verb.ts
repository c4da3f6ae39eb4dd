/** One verb of the command: what it is called, what help says, how it is parsed and run. */
import type { Flag } from "./Flags.ts"

export interface Verb {
  readonly name: string
  /** One line, for the list of verbs. */
  readonly summary: string
  /** How the words after the options are written: `[SESSION]`, `TEXT...`. */
  readonly words: string
  /** What a reader needs beside the options, in paragraphs. */
  readonly details: ReadonlyArray<string>
  readonly flags: ReadonlyArray<Flag<unknown>>
  /** A command line, and what it does. */
  readonly examples: ReadonlyArray<readonly [line: string, does: string]>
  /** How it is parsed and run; its own type stays with each verb. */
  readonly command: unknown
}
