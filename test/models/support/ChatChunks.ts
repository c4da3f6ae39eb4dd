/** Chunks of chat completions, as the tables of reports write them. */
import type { Reply } from "./Server.ts"
import { data } from "./Reported.ts"

type Json = Record<string, unknown>

export const chunk = (delta: unknown, finish_reason: unknown = null, more: Json = {}) => ({
  id: "c1",
  object: "chat.completion.chunk",
  model: "m",
  choices: [{ index: 0, delta, finish_reason }],
  ...more
})
/** A chunk with more in its choice. */
export const chosen = (delta: unknown, finish_reason: unknown, more: Json) => ({
  choices: [{ index: 0, delta, finish_reason, ...more }]
})
export const said = (...words: ReadonlyArray<string>) => words.map((content) => chunk({ content }))
export const stop = chunk({}, "stop")
export const done = data("[DONE]")
export const call = (args: unknown, more: Json = {}) => ({
  index: 0,
  id: "a1",
  type: "function",
  function: { name: "look", arguments: args },
  ...more
})
export const calls = (...all: ReadonlyArray<Json>) => chunk({ tool_calls: all })
export const called = chunk({}, "tool_calls")
export const one = { path: "one" }
export const two = { path: "two" }
export const text = JSON.stringify
export const whole = (message: Json, finish_reason: unknown = "stop", more: Json = {}) => ({
  id: "c1",
  choices: [{ index: 0, message, finish_reason }],
  ...more
})
/** A body of which each byte is a piece of its own would be slow: pieces of three bytes. */
export const bytes = (source: string): Reply => ({
  chunks:
    Buffer.from(source)
      .toString("latin1")
      .match(/[\s\S]{1,3}/g) ?? [],
  encoding: "latin1"
})
