/**
 * Reads keys from the terminal while a question is open. The system buffers keys that are typed between questions; the
 * next question discards them. Spec: CL-153 in specs/cli.md.
 */
import { StringDecoder } from "node:string_decoder"

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
