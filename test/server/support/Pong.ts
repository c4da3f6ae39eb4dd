/** A server that answers each request with a pong of its id, and each invalid line with its error. */
import { Effect, Either, Stream } from "effect"
import type { Connection } from "../../../packages/server/src/socket/Listener.ts"
import { decode, encodeFrame, errorFrame } from "../../../packages/server/src/socket/Wire.ts"

export const answerPongs = (connection: Connection): Effect.Effect<void> =>
  connection.lines.pipe(
    Stream.runForEach((line) => {
      const request = decode(line)
      if (Either.isLeft(request)) return connection.write(encodeFrame(errorFrame(request.left)))
      const id = "id" in request.right ? request.right.id : undefined
      return connection.write(encodeFrame({ type: "pong", ...(id === undefined ? {} : { id }) }))
    }),
    Effect.ignore
  )
