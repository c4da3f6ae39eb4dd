/** Reads the bytes of a stream as they come, heartbeats included. */
import { Effect, Option, Stream } from "effect"
import { request } from "./ServedApi.ts"

/** Opens a stream; the returned function waits for the text that satisfies the predicate, and takes it. */
export const open = Effect.fnUntraced(function* (path: string, accept: string) {
  const response = yield* request(path, { headers: { accept } })
  const pull = yield* Stream.toPull(
    Stream.decodeText(
      Stream.fromReadableStream({
        // A response that nobody holds is collected with its unread body: the stream would end early.
        evaluate: () => response.body ?? new ReadableStream<Uint8Array>({ start: (it) => it.close() }),
        onError: (cause) => new Error("the stream was cut off", { cause })
      })
    )
  )
  return (holds: (text: string) => boolean) =>
    Effect.gen(function* () {
      let text = ""
      while (!holds(text)) text += [...(yield* Effect.mapError(pull, Option.getOrUndefined))].join("")
      return text
    })
})
