/** Defines the terminal styles. No information is conveyed by colour alone. Spec: CL-46 in specs/cli.md. */

/** Each function sets one attribute and resets only that one. */
export interface Style {
  readonly dim: (text: string) => string
  readonly strong: (text: string) => string
  readonly good: (text: string) => string
  readonly bad: (text: string) => string
  /** Reverse video, which only the command's questions use. */
  readonly marked: (text: string) => string
}

const sgr = (on: number, off: number) => (text: string) => (text === "" ? "" : `\u001b[${on}m${text}\u001b[${off}m`)

export const coloured: Style = {
  dim: sgr(2, 22),
  strong: sgr(1, 22),
  good: sgr(32, 39),
  bad: sgr(31, 39),
  marked: sgr(7, 27)
}

const same = (text: string) => text

/** No styles: for files, pipes and `NO_COLOR`. */
export const plain: Style = { dim: same, strong: same, good: same, bad: same, marked: same }

/** The styles for an output of this environment. */
export const styleOf = (env: Readonly<Record<string, string | undefined>>, terminal: boolean): Style =>
  terminal && (env["NO_COLOR"] ?? "") === "" && env["TERM"] !== "dumb" ? coloured : plain
