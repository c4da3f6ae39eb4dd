/** A bash at the other end of a channel, without a live shell: what its `echo hi` takes at least. */
import { Effect } from "effect"

export interface Channel {
  readonly stdout: NodeJS.ReadableStream
  readonly stdin: NodeJS.WritableStream
}

/** Writes the text. Completes when the output since then ends as expected. */
const asked = ({ stdin, stdout }: Channel, text: string, end: RegExp) =>
  Effect.async<void>((resume) => {
    let seen = ""
    const listen = (chunk: Buffer) => {
      seen += chunk.toString("latin1")
      if (!end.test(seen)) return
      stdout.off("data", listen)
      resume(Effect.void)
    }
    stdout.on("data", listen)
    stdin.write(text)
  })

/** The text and its answer: no end, no exit code. */
export const raw = (channel: Channel) => asked(channel, "echo hi\n", /hi\n$/)

/**
 * The shortest frame with an exit code and a folder: the command has an empty input and its output ends with a known text. It
 * keeps no other promise: a command can forge the end, and standard error is not followed.
 */
export const framed = (channel: Channel) =>
  asked(channel, `{ echo hi\n} </dev/null; printf '%d %s end\\n' "$?" "$PWD"\n`, /^hi\n0 \S+ end\n$/)
