/** Reads the text of a prompt from words or stdin. Spec: CL-23..CL-25 in specs/cli.md. */
import { fstatSync } from "node:fs"
import { Effect } from "effect"
import { UsageError } from "../support/Errors.ts"

/** More than any model reads; a longer prompt is a mistake. */
const maxBytes = 16 * 1024 * 1024

const refuse = (message: string) => new UsageError({ message })

/** Decodes stdin: UTF-8 text, without the final line end that commands add to their output. Pure. */
export const decode = (bytes: Uint8Array): Effect.Effect<string, UsageError> =>
  Effect.try({
    try: () => new TextDecoder("utf-8", { fatal: true }).decode(bytes),
    catch: () => refuse("stdin is not UTF-8 text; name a binary file in the prompt instead")
  }).pipe(
    Effect.filterOrFail(
      (text) => !text.includes("\0"),
      () => refuse("stdin contains binary data; name a binary file in the prompt instead")
    ),
    Effect.map((text) => text.replace(/\r?\n$/, ""))
  )

const stdin = Effect.gen(function* () {
  const chunks: Array<Uint8Array> = []
  let size = 0
  const bytes = yield* Effect.tryPromise({
    try: async () => {
      for await (const chunk of process.stdin) {
        const part = typeof chunk === "string" ? Buffer.from(chunk) : (chunk as Uint8Array) // the stream has no encoding
        size += part.length
        if (size > maxBytes) return undefined
        chunks.push(part)
      }
      return Buffer.concat(chunks)
    },
    catch: (cause) => refuse(`stdin cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`)
  })
  if (bytes === undefined) {
    return yield* refuse(`the prompt is longer than ${maxBytes / 1024 / 1024} MiB; name the file in the prompt instead`)
  }
  return yield* decode(bytes)
})

/** The text, unless there is nothing in it. */
export const notEmpty = (text: string): Effect.Effect<string, UsageError> =>
  text.trim() === "" ? refuse('the prompt is empty; say what to do: daybook prompt "..."') : Effect.succeed(text)

/** Whether somebody pipes or redirects something in. `/dev/null` and a terminal are neither. */
const isPiped = (): boolean => {
  try {
    const stats = fstatSync(0)
    return stats.isFIFO() || stats.isFile() || stats.isSocket()
  } catch {
    return false
  }
}

/** The words, and below them what is piped in. */
const withInput = (words: ReadonlyArray<string>) =>
  Effect.map(isPiped() ? stdin : Effect.succeed(""), (piped) =>
    [words.join(" "), piped].filter((text) => text.trim() !== "").join("\n\n")
  )

/**
 * The words joined by spaces; stdin for a dash, or without words if stdin is not a terminal. With `appending`, what is piped in
 * is appended to the words. Never empty.
 */
export const read = (words: ReadonlyArray<string>, appending = false): Effect.Effect<string, UsageError> => {
  if (appending) return Effect.flatMap(withInput(words), notEmpty)
  const fromStdin = words.length === 0 ? process.stdin.isTTY !== true : words.length === 1 && words[0] === "-"
  return Effect.flatMap(fromStdin ? stdin : Effect.succeed(words.join(" ")), notEmpty)
}
