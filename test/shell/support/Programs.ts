/** Runs programs of a transport to their end, with all that they print. */
import { Deferred, Effect, Exit as Outcome, type Scope } from "effect"
import { randomBytes } from "node:crypto"
import type { TransportFailed } from "../../../packages/shell/src/domain/ShellError.ts"
import type { Exit, Program, StreamName, Transport } from "../../../packages/shell/src/transport/Program.ts"
import { waitingFor } from "../../support/Waiting.ts"

export interface Collected {
  /** Everything that came so far. */
  readonly text: (stream: StreamName) => string
  readonly bytes: (stream: StreamName) => Buffer
  /** Waits until the condition holds. It is asked after each chunk. */
  readonly until: (what: string, holds: () => boolean) => Effect.Effect<void>
}

/** Listens to a program. */
export const collect = (program: Program): Collected => {
  const chunks: Record<StreamName, Array<Uint8Array>> = { stdout: [], stderr: [] }
  const waiting = new Set<() => void>()
  program.listen((stream, bytes) => {
    chunks[stream].push(bytes)
    for (const look of waiting) look()
  })
  const bytes = (stream: StreamName) => Buffer.concat(chunks[stream])
  return {
    bytes,
    text: (stream) => bytes(stream).toString("utf8"),
    until: (what, holds) =>
      Effect.gen(function* () {
        const held = yield* Deferred.make<void>()
        const look = () => {
          if (!holds()) return
          waiting.delete(look)
          Deferred.unsafeDone(held, Outcome.void)
        }
        waiting.add(look)
        look()
        yield* waitingFor(what)(Deferred.await(held))
      })
  }
}

export interface Ended {
  readonly stdout: Buffer
  readonly stderr: Buffer
  readonly exit: Exit
}

/**
 * Runs a script in a subshell to its end. Output may arrive after the end is known, so both streams end with a mark, which is
 * removed.
 */
export const runToEnd = (transport: Transport, script: string, input = ""): Effect.Effect<Ended, TransportFailed> =>
  Effect.scoped(
    Effect.gen(function* () {
      const mark = randomBytes(8).toString("hex")
      const marked = `(\n${script}\n)\ncode=$?; printf %s ${mark}; printf %s ${mark} >&2; exit $code`
      const program = yield* transport.run(marked)
      const { bytes, until } = collect(program)
      yield* program.write(input)
      yield* program.endInput
      const isWhole = (stream: StreamName) => bytes(stream).subarray(-mark.length).toString() === mark
      yield* until(`the output of ${script}`, () => isWhole("stdout") && isWhole("stderr"))
      const exit = yield* program.exit
      return {
        stdout: bytes("stdout").subarray(0, -mark.length),
        stderr: bytes("stderr").subarray(0, -mark.length),
        exit
      }
    })
  )

/** A program that waits for input, and says when it runs. */
export const waitingProgram = (
  transport: Transport,
  then = "cat"
): Effect.Effect<Program, TransportFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const program = yield* transport.run(`echo ready; ${then}`)
    const output = collect(program)
    yield* output.until("a program's first line", () => output.text("stdout").startsWith("ready\n"))
    return program
  })
