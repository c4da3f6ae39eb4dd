/** Reads the frames of a stream over TCP, as lines of JSON. */
import { Effect, Schema, Stream } from "effect"
import { Frame } from "../../../../packages/api/src/wire/EventFrames.ts"
import { request } from "./ServedApi.ts"

const decode = Schema.decodeUnknown(Schema.parseJson(Frame))

/** The frames of a response, until it ends. */
export const framesOf = (response: Response) =>
  Stream.fromReadableStream({
    evaluate: () => response.body ?? new ReadableStream<Uint8Array>({ start: (it) => it.close() }),
    onError: (cause) => new Error("the stream was cut off", { cause })
  }).pipe(
    Stream.decodeText(),
    Stream.splitLines,
    Stream.filter((line) => line !== ""),
    Stream.mapEffect(decode)
  )

/** The frames of a path. */
export const frames = (path: string, headers: Readonly<Record<string, string>> = {}) =>
  Stream.unwrap(Effect.map(request(path, { headers: { accept: "application/x-ndjson", ...headers } }), framesOf))

/** All frames of a stream that ends. */
export const allFrames = (path: string) => Effect.map(Stream.runCollect(frames(path)), (chunk) => [...chunk])
