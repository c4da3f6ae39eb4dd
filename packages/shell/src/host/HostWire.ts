/**
 * Messages on the host's socket: a line of JSON each, of a bounded length. The library's serialization decodes each chunk alone,
 * and would lose a character that two chunks share. Spec: SL-174, SL-175 in specs/shell.md.
 */
import { StringDecoder } from "node:string_decoder"
import * as RpcSerialization from "@effect/rpc/RpcSerialization"
import { Data, Layer } from "effect"

/** Characters of a message to the host: a command of the longest length, in which each character is escaped, fits. */
const toHost = 8 * 1024 * 1024
/** Characters of a message to a client: the largest result that a budget allows fits. */
const toClient = 256 * 1024 * 1024

/** A message is too long. The library ends the connection for an error with this tag. */
class TooLong extends Data.TaggedError("RpcSerializationError")<{ readonly longest: number }> {
  override get message() {
    return `a message has more than ${this.longest} characters`
  }
}

const encode = (message: unknown): string | undefined => {
  const messages: ReadonlyArray<unknown> = Array.isArray(message) ? message : [message]
  return messages.length === 0 ? undefined : messages.map((each) => `${JSON.stringify(each)}\n`).join("")
}

/** Gives whole lines. After a line that is too long it takes nothing more. */
const makeDecode = (longest: number) => {
  const decoder = new StringDecoder("utf8")
  let parts: Array<string> = []
  let length = 0
  let failed = false
  const add = (part: string) => {
    length += part.length
    parts.push(part)
    if (length <= longest) return
    failed = true
    parts = []
    throw new TooLong({ longest })
  }
  return (data: Uint8Array | string): ReadonlyArray<unknown> => {
    if (failed) return []
    const [first = "", ...rest] = (typeof data === "string" ? data : decoder.write(Buffer.from(data))).split("\n")
    add(first)
    return rest.map((next) => {
      const line = parts.join("")
      parts = []
      length = 0
      add(next)
      return JSON.parse(line)
    })
  }
}

const layer = (longest: number) =>
  Layer.succeed(
    RpcSerialization.RpcSerialization,
    RpcSerialization.RpcSerialization.of({
      contentType: "application/ndjson",
      includesFraming: true,
      unsafeMake: () => ({ encode, decode: makeDecode(longest) })
    })
  )

export const layerHost = layer(toHost)
export const layerClient = layer(toClient)
