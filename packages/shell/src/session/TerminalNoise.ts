/**
 * Removes complaints of bash from the errors of a command. An interactive bash restores the state of its terminal when a signal
 * has ended a child, and says that it has none. Where a command made `_` read-only, it says so before each command. Spec: SL-15
 * in specs/shell.md.
 */
import type { Sink } from "./StreamCutter.ts"

/** Longer lines are no complaint. */
const longest = 256

const newline = 10

const nothing = Buffer.alloc(0)

const start = Buffer.from("bash: ")

/** Complaints of the bash with this number. */
const complaints = (pid: number): RegExp =>
  new RegExp(`^bash: (?:_: readonly variable|\\[${pid}: [^\\]]+\\] tcsetattr: [^\\n]+)$`)

/** Bytes at the end that may begin the text. */
const beginning = (bytes: Buffer, text: Buffer): number => {
  for (let length = Math.min(bytes.length, text.length - 1); length > 0; length--) {
    if (bytes.subarray(bytes.length - length).equals(text.subarray(0, length))) return length
  }
  return 0
}

export interface Quiet {
  readonly add: Sink
  /** Passes what is still held. */
  readonly end: () => void
}

/** `pid` is the shell's own number of its process. */
export const without = (pid: number, sink: Sink): Quiet => {
  // Most commands print no errors.
  let found: RegExp | undefined
  let held = nothing
  const pass = (bytes: Buffer) => {
    if (bytes.length > 0) sink(bytes)
  }
  return {
    add: (bytes) => {
      const complaint = (found ??= complaints(pid))
      let rest = held.length === 0 ? Buffer.from(bytes) : Buffer.concat([held, bytes])
      for (let at = rest.indexOf(start); at >= 0; at = rest.indexOf(start)) {
        pass(rest.subarray(0, at))
        rest = rest.subarray(at)
        const end = rest.indexOf(newline)
        if (end < 0 && rest.length <= longest) {
          held = rest
          return
        }
        const line = rest.subarray(0, end)
        if (end < 0 || end > longest || !complaint.test(line.toString("latin1"))) {
          pass(rest.subarray(0, start.length))
          rest = rest.subarray(start.length)
        } else rest = rest.subarray(end + 1)
      }
      const left = beginning(rest, start)
      pass(rest.subarray(0, rest.length - left))
      held = rest.subarray(rest.length - left)
    },
    end: () => {
      pass(held)
      held = nothing
    }
  }
}
