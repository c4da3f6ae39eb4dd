/**
 * Runs a script of checkpoints to its end and returns what it printed. A script reports its result by a trailer between two
 * tokens, because a program may end before its last output arrives. Spec: SL-150, SL-153 in specs/shell.md.
 */
import { randomBytes } from "node:crypto"
import { Deferred, Effect } from "effect"
import type { TransportFailed } from "../domain/ShellError.ts"
import type { Transport } from "../transport/Program.ts"
import { CheckpointFailed } from "./CheckpointError.ts"

/** Bytes that a script prints at most: the paths of some hundred thousand files. */
const longestOutput = 128 * 1024 * 1024

/** Characters of what a program says when it does not begin, or ends early. */
const longestComplaint = 500

export interface Finished {
  readonly output: Buffer
  /** 0 for success. */
  readonly code: number
  /** What the script says about a failure. */
  readonly details: string
}

const failed = (details: string) => new CheckpointFailed({ reason: "failed", details })

/** The trailer is `TOKEN code newline details TOKEN`. */
const finishedIn = (output: Buffer, token: string): Finished | undefined => {
  const end = output.length - token.length
  if (end < token.length || output.toString("latin1", end) !== token) return undefined
  const start = output.subarray(0, end).lastIndexOf(token)
  if (start < 0) return undefined
  const trailer = output.toString("utf8", start + token.length, end)
  const line = trailer.indexOf("\n")
  return {
    output: output.subarray(0, start),
    code: Number(trailer.slice(0, line)),
    details: trailer.slice(line + 1).trim()
  }
}

/** `script` is given the token and prints the trailer. `input` is its standard input. */
export const runScript = (
  transport: Pick<Transport, "run">,
  script: (token: string) => string,
  input: Uint8Array = new Uint8Array()
): Effect.Effect<Finished, CheckpointFailed | TransportFailed> =>
  Effect.scoped(
    Effect.gen(function* () {
      const token = randomBytes(16).toString("hex")
      const program = yield* transport.run(script(token))
      const finished = yield* Deferred.make<Finished, CheckpointFailed>()
      const chunks: Array<Uint8Array> = []
      let size = 0
      let last = ""
      let complaint = ""
      program.listen((stream, bytes) => {
        if (stream === "stderr") complaint = (complaint + Buffer.from(bytes).toString("utf8")).slice(-longestComplaint)
        if (stream !== "stdout") return
        size += bytes.length
        if (size > longestOutput) return Deferred.unsafeDone(finished, failed("the list of files is too long"))
        chunks.push(bytes)
        last = (last + Buffer.from(bytes.subarray(-token.length)).toString("latin1")).slice(-token.length)
        if (last !== token) return
        const found = finishedIn(Buffer.concat(chunks), token)
        if (found !== undefined) Deferred.unsafeDone(finished, Effect.succeed(found))
      })
      yield* Effect.forkScoped(Effect.zipRight(program.write(input), program.endInput))
      const endedEarly = program.exit.pipe(
        // Output that is still on its way.
        Effect.zipRight(Effect.sleep("2 seconds")),
        Effect.zipRight(
          Effect.suspend(() =>
            Deferred.fail(finished, failed(`the program ended before it was done. ${complaint.trim()}`.trim()))
          )
        )
      )
      // Also where the caller cannot be interrupted: its end must not wait for the sleep.
      yield* Effect.forkScoped(Effect.interruptible(endedEarly))
      return yield* Deferred.await(finished)
    })
  )
