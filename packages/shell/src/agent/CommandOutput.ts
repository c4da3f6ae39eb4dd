/**
 * Passes the output of a command on to a reader that may be slower: the shell is not read while too much waits. Spec:
 * SL-235 in specs/shell.md.
 */
import { Effect, Mailbox, Stream } from "effect"
import type { Chunk } from "@daybook/core/child/ShellProcess"
import type { CalledCommand, Flow } from "../ShellOptions.ts"

/** Bytes that wait before the shell is not read any more. */
const most = 1_048_576

export interface CommandOutput {
  readonly take: CalledCommand["take"]
  /** For one reader. Ends with `end`. */
  readonly output: Stream.Stream<Chunk>
  readonly end: Effect.Effect<void>
  /** Drops the rest, so that the command never waits: its reader has stopped. */
  readonly discard: Effect.Effect<void>
}

export const make = Effect.map(Mailbox.make<Chunk>(), (mailbox): CommandOutput => {
  let waiting = 0
  let dropping = false
  let paused: Flow | undefined
  const resume = () => {
    paused?.resume()
    paused = undefined
  }
  return {
    take: (stream, bytes, flow) => {
      if (dropping) return
      waiting += bytes.length
      mailbox.unsafeOffer({ stream, bytes })
      if (waiting <= most || paused !== undefined) return
      paused = flow
      flow.pause()
    },
    output: Stream.map(Mailbox.toStream(mailbox), (chunk) => {
      waiting -= chunk.bytes.length
      if (waiting === 0) resume()
      return chunk
    }),
    end: Effect.asVoid(mailbox.end),
    discard: Effect.sync(() => {
      dropping = true
      resume()
    })
  }
})
