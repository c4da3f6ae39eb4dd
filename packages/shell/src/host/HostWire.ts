/**
 * Messages on the host's socket: a line of JSON each, of a bounded length. Spec: SL-174, SL-175 in specs/shell.md.
 */
import { StringDecoder } from "node:string_decoder"
import * as RpcSerialization from "@effect/rpc/RpcSerialization"
import { Layer } from "effect"

/** Characters of a message to the host: a command of the longest length, in which each character is escaped, fits. */
const toHost = 8 * 1024 * 1024
/** Characters of a message to a client: the largest result that a budget allows fits. */
const toClient = 256 * 1024 * 1024

/** The library's serialization decodes each chunk alone: a character that two chunks share would be lost. */
const lines = (maxBufferSize: number): RpcSerialization.RpcSerialization["Type"] => {
  const whole = RpcSerialization.makeNdjson({ maxBufferSize })
  return RpcSerialization.RpcSerialization.of({
    ...whole,
    unsafeMake: () => {
      const parser = whole.unsafeMake()
      const decoder = new StringDecoder("utf8")
      return {
        encode: parser.encode,
        decode: (data) => parser.decode(typeof data === "string" ? data : decoder.write(Buffer.from(data)))
      }
    }
  })
}

const layer = (maxBufferSize: number) => Layer.succeed(RpcSerialization.RpcSerialization, lines(maxBufferSize))

export const layerHost = layer(toHost)
export const layerClient = layer(toClient)
