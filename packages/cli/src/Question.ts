/** Asking the person at the terminal. Spec: CL-18, CL-35 in specs/cli.md. */
import { Effect } from "effect"
import { createInterface } from "node:readline"
import * as Terminal from "./Terminal.ts"

/** Whether somebody is there to answer: questions go to stderr, answers come from stdin. */
export const canAsk = (): boolean => process.stdin.isTTY === true && process.stderr.isTTY === true

/** There is one terminal: whoever asks, one question at a time. */
const one = Effect.unsafeMakeSemaphore(1)

/** Questions that belong together: nobody else asks between them. */
export const together = one.withPermits(1)

/** {@link line}, alone. */
export const ask = (question: string): Effect.Effect<string | undefined> => together(line(question))

/** One line of an answer; `undefined` when nobody is there or the input ends. Interruption withdraws the question. */
export const line = (question: string): Effect.Effect<string | undefined> =>
  Effect.suspend(() => (canAsk() ? Terminal.alone(read(question)) : Effect.succeed(undefined)))

const read = (question: string) =>
  Effect.async<string | undefined>((resume) => {
    process.stderr.write(question)
    // Not a terminal interface: the line stays cooked, and Ctrl-C stays a signal.
    const lines = createInterface({ input: process.stdin, terminal: false })
    lines.once("line", (line) => {
      resume(Effect.succeed(line))
      lines.close()
    })
    lines.once("close", () => resume(Effect.succeed(undefined)))
    return Effect.sync(() => {
      // Whatever comes next begins on a line of its own.
      process.stderr.write("\n")
      lines.close()
    })
  })
