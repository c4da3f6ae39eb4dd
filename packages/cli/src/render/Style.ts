/** The few styles that are used on a terminal. Nothing is said by a colour alone. Spec: CL-46 in specs/cli.md. */

/** Each sets one attribute and takes only that one back. */
export interface Style {
  readonly dim: (text: string) => string
  readonly good: (text: string) => string
  readonly bad: (text: string) => string
  /** In swapped colours: what no text of others can be. */
  readonly marked: (text: string) => string
}

const sgr = (on: number, off: number) => (text: string) => (text === "" ? "" : `\u001b[${on}m${text}\u001b[${off}m`)

/** For a terminal. */
export const coloured: Style = { dim: sgr(2, 22), good: sgr(32, 39), bad: sgr(31, 39), marked: sgr(7, 27) }

const same = (text: string) => text

/** For everything else, and where `NO_COLOR` is set. */
export const plain: Style = { dim: same, good: same, bad: same, marked: same }

/** What a terminal of this environment understands. */
export const styleOf = (env: Readonly<Record<string, string | undefined>>, terminal: boolean): Style =>
  terminal && (env["NO_COLOR"] ?? "") === "" && env["TERM"] !== "dumb" ? coloured : plain
