/**
 * Splits the body of an answer into events. Accepts any line end, a byte order mark, comments, fields without data, frames that are
 * glued together or lack the empty line between them, and JSON without `data:`. A body that is not an event stream is returned whole.
 * Bounded. Pure, but for its state. Spec: MD-23, MD-92, LM-10 in specs/models.md and limits.md.
 */
import { HttpRefused } from "@daybook/core/http/SameOrigin"
import * as Limits from "@daybook/core/support/Limits"
import { type Json, objectsIn, parse } from "./Json.ts"

export type Frame =
  | { readonly _tag: "Event"; readonly name: string; readonly event: Json }
  /** The protocol's end mark of chat completions. */
  | { readonly _tag: "Done" }
  /** Data that is not JSON: its text looks like JSON that was cut, or not. */
  | { readonly _tag: "Unreadable"; readonly isJson: boolean }
  | { readonly _tag: "Whole"; readonly body: string }

const tooLarge = (message: string) => new HttpRefused("answer_too_large", message)

/** Lines that begin an event stream. */
const field = /^(?:data|event|error|id|retry)\s*:|^:|^\s*$/i
const named = /^(data|event|error)\s*:\s?/i

export const isMark = (text: string): boolean => /^"?\[DONE\]"?$/i.test(text)

export class Framer {
  readonly #decoder = new TextDecoder()
  /** The pieces of a line without its end: each is searched once. */
  #pieces: Array<string> = []
  #length = 0
  #total = 0
  #data: Array<string> = []
  #name = ""
  #endedInReturn = false
  /** The lines so far of a body that is not an event stream; undefined once it is known to be one. */
  #whole: Array<string> | undefined
  #decided = false

  /** The frames that these bytes complete. Throws `HttpRefused` beyond the limits. */
  feed(bytes: Uint8Array): ReadonlyArray<Frame> {
    this.#total += bytes.length
    if (this.#total > Limits.maxStreamBytes) {
      throw tooLarge(`the answer has more than ${Limits.maxStreamBytes} bytes, which is the limit`)
    }
    return this.#lines(this.#decoder.decode(bytes, { stream: true }))
  }

  end(): ReadonlyArray<Frame> {
    const frames = [...this.#lines(this.#decoder.decode())]
    const last = this.#pieces.join("")
    this.#pieces = []
    if (last !== "") frames.push(...this.#line(last))
    if (this.#whole !== undefined) return [...frames, { _tag: "Whole", body: this.#whole.join("\n") }]
    return [...frames, ...this.#dispatch()]
  }

  #lines(text: string): ReadonlyArray<Frame> {
    const frames: Array<Frame> = []
    let begin = this.#endedInReturn && text.startsWith("\n") ? 1 : 0
    if (text !== "") this.#endedInReturn = text.endsWith("\r")
    for (let at = begin; at < text.length; at++) {
      const code = text.charCodeAt(at)
      if (code !== 10 && code !== 13) continue
      const line = this.#pieces.length === 0 ? text.slice(begin, at) : this.#pieces.join("") + text.slice(begin, at)
      this.#pieces = []
      // The pieces before were counted when they came.
      this.#count(at - begin)
      if (code === 13 && text.charCodeAt(at + 1) === 10) at++
      begin = at + 1
      frames.push(...this.#line(line))
    }
    if (begin < text.length) {
      this.#count(text.length - begin)
      this.#pieces.push(text.slice(begin))
    }
    return frames
  }

  #count(length: number): void {
    this.#length += length
    const limit = this.#whole === undefined ? Limits.maxEventBytes.provider : Limits.maxBodyBytes.provider
    if (this.#length > limit) throw tooLarge(`a message has more than ${limit} bytes, which is the limit`)
  }

  #line(text: string): ReadonlyArray<Frame> {
    const line = this.#decided ? text : text.replace(/^\ufeff/, "")
    if (!this.#decided && line.trim() !== "") {
      this.#decided = true
      if (!field.test(line)) this.#whole = []
    }
    if (this.#whole !== undefined) {
      this.#whole.push(line)
      return []
    }
    if (line === "") {
      this.#length = 0
      return this.#dispatch()
    }
    if (line.startsWith("data:")) return this.#take(line.slice(line[5] === " " ? 6 : 5))
    const [whole = "", name] = named.exec(line) ?? []
    const rest = line.slice(whole.length)
    switch (name?.toLowerCase()) {
      case "data":
        return this.#take(rest)
      case "event":
      case "error": {
        // A name begins a new event, also where the empty line before it is missing.
        const before = this.#data.length > 0 ? this.#dispatch() : []
        this.#name = name?.toLowerCase() === "event" ? rest.trim() : "error"
        if (this.#name === "error" && /^\s*\{/.test(rest)) this.#data.push(rest)
        return before
      }
    }
    // JSON without a name, and the further lines of JSON that has line breaks.
    if (/^[{[]/.test(line) || (this.#data.length > 0 && !field.test(line))) return this.#take(line)
    return field.test(line) ? [] : [{ _tag: "Unreadable", isJson: false }]
  }

  #take(data: string): ReadonlyArray<Frame> {
    this.#data.push(data)
    return []
  }

  #dispatch(): ReadonlyArray<Frame> {
    const data = this.#data
    const name = this.#name
    this.#data = []
    this.#name = ""
    if (data.length === 0) return []
    if (data.length > 1 && parse(data.join("\n")) === undefined) return data.flatMap((line) => framesOf(line, name))
    return framesOf(data.join("\n"), name)
  }
}

const framesOf = (data: string, name: string): ReadonlyArray<Frame> => {
  const trimmed = data.trim()
  if (trimmed === "") return []
  if (isMark(trimmed)) return [{ _tag: "Done" }]
  const { objects, rest } = objectsIn(trimmed)
  const events = objects.map((event): Frame => ({ _tag: "Event", name, event }))
  if (rest === "") return events
  if (isMark(rest)) return [...events, { _tag: "Done" }]
  return [...events, { _tag: "Unreadable", isJson: /^[{[]/.test(rest) }]
}
