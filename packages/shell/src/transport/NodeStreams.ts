/** Writes to a program's standard input, with the stream's own backpressure. */
import type { Writable } from "node:stream"
import { Effect } from "effect"
import type { Program } from "./Program.ts"

/** After the end of the program or of its input, bytes are ignored. */
export const writing = (stdin: Writable): Pick<Program, "write" | "endInput"> => {
  // The program may end before it has read its input.
  stdin.on("error", () => undefined)
  return {
    write: (bytes) =>
      Effect.async<void>((resume) => {
        if (stdin.destroyed || stdin.writableEnded) return resume(Effect.void)
        stdin.write(bytes, () => resume(Effect.void))
      }),
    endInput: Effect.sync(() => void stdin.end())
  }
}
