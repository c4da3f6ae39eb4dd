/**
 * Serialises the writers of the process's one terminal. A question waits until earlier output is written, and removes
 * the live lines until it is answered. Also reads the keys that a person types at the terminal. Spec: CL-35, CL-45 in
 * specs/cli.md.
 */
import { StringDecoder } from "node:string_decoder"
import { Effect } from "effect"

/** Reads keys; tests replace it. */
export interface Keyboard {
  /**
   * Passes input to `take` until the returned function is called; `undefined` is the end of the input. `unseen` passes each
   * key without echo, including keys typed earlier. `lines` passes whole lines that the terminal has edited.
   */
  readonly listen: (mode: "unseen" | "lines", take: (typed: string | undefined) => void) => () => void
}

const interruptKey = "\u0003"

/** Reads from stdin, which must be a terminal. */
export const standard: Keyboard = {
  listen: (mode, take) => {
    const { stdin } = process
    const decoder = new StringDecoder("utf8")
    const onData = (chunk: Buffer | string) => {
      const typed = typeof chunk === "string" ? chunk : decoder.write(chunk)
      // In raw mode the terminal does not turn Ctrl-C into a signal.
      if (mode === "unseen" && typed.includes(interruptKey)) process.kill(process.pid, "SIGINT")
      if (typed !== "") take(typed)
    }
    const onEnd = () => take(undefined)
    if (stdin.readableEnded || stdin.destroyed) {
      const timer = setImmediate(onEnd)
      return () => clearImmediate(timer)
    }
    stdin.setRawMode(mode === "unseen")
    stdin.on("data", onData).on("end", onEnd).on("error", onEnd).resume()
    return () => {
      stdin.off("data", onData).off("end", onEnd).off("error", onEnd).pause()
      if (!stdin.destroyed) stdin.setRawMode(false)
    }
  }
}

export interface Moving {
  /** Returns when all output so far has been written. */
  readonly caughtUp: Effect.Effect<void>
  readonly clear: Effect.Effect<void>
}

const still: Moving = { caughtUp: Effect.void, clear: Effect.void }
let moving = still

/** Registers the live lines; `undefined` if there are none. */
export const shown = (now: Moving | undefined): void => {
  moving = now ?? still
}

const one = Effect.unsafeMakeSemaphore(1)

/** Runs an effect as the only writer. */
export const turn = one.withPermits(1)

/** How long a question waits for earlier output. */
const patience = "1 second"

/** Gives the terminal to a question, without live lines. */
export const alone = <A, E, R>(question: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    const { caughtUp, clear } = moving
    return Effect.zipRight(Effect.ignore(Effect.timeout(caughtUp, patience)), turn(Effect.zipRight(clear, question)))
  })
