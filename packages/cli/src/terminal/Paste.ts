/**
 * Asks the terminal to mark pasted text (bracketed paste), so that a line end in it is text and does not submit anything.
 * Spec: CL-265.
 */
import type { Key } from "node:readline"

/** Whether a paste is under way. */
export interface Paste {
  readonly isUnderWay: () => boolean
  /** Asks the terminal for plain pastes again. */
  readonly stop: () => void
}

/** Marks pastes until `stop`. The terminal's keys must already be read by an editor on stdin. */
export const marked = (output: NodeJS.WriteStream): Paste => {
  let isUnderWay = false
  const look = (_: string | undefined, { name }: Key) => {
    if (name === "paste-start") isUnderWay = true
    if (name === "paste-end") isUnderWay = false
  }
  // Before the editor's own listener, which makes lines of the keys.
  process.stdin.prependListener("keypress", look)
  output.write("\u001b[?2004h")
  return {
    isUnderWay: () => isUnderWay,
    stop: () => {
      process.stdin.off("keypress", look)
      output.write("\u001b[?2004l")
    }
  }
}

/** The text of lines that were typed or pasted. The line end that ended a paste and the Enter after it are one. */
export const textOf = (lines: ReadonlyArray<string>): string =>
  (lines.length > 1 && lines.at(-1) === "" ? lines.slice(0, -1) : lines).join("\n")
