/** Reads a prompt's text and options: attachments, the answer's schema, tools. Spec: CL-23..CL-25, CL-84..CL-87. */
import { fstatSync } from "node:fs"
import { readFile, realpath, stat } from "node:fs/promises"
import { basename, isAbsolute, relative, resolve, sep } from "node:path"
import { pathToFileURL } from "node:url"
import { Effect, Predicate } from "effect"
import type { FileAttachment, OutputFormat } from "@daybook/log/domain/Values"
import { codeOf, messageOf } from "@daybook/log/support/SystemError"
import { oneLine } from "../render/Plain.ts"
import { UsageError } from "../support/Errors.ts"

/** More than any model reads; a longer prompt is a mistake. */
const maxTextBytes = 16 * 1024 * 1024

const refuse = (message: string) => new UsageError({ message })

/** Decodes stdin: UTF-8 text, without the final line end that commands add to their output. Pure. */
const decodeText = (bytes: Uint8Array): Effect.Effect<string, UsageError> =>
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
        if (size > maxTextBytes) return undefined
        chunks.push(part)
      }
      return Buffer.concat(chunks)
    },
    catch: (cause) => refuse(`stdin cannot be read: ${messageOf(cause)}`)
  })
  if (bytes === undefined) {
    return yield* refuse(
      `the prompt is longer than ${maxTextBytes / 1024 / 1024} MiB; name the file in the prompt instead`
    )
  }
  return yield* decodeText(bytes)
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

/** The words, or stdin for a dash or no words. With `appending`, stdin is appended to the words. Never empty. */
export const readText = (words: ReadonlyArray<string>, appending: boolean): Effect.Effect<string, UsageError> => {
  if (appending) return Effect.flatMap(withInput(words), notEmpty)
  const fromStdin = words.length === 0 ? process.stdin.isTTY !== true : words.length === 1 && words[0] === "-"
  return Effect.flatMap(fromStdin ? stdin : Effect.succeed(words.join(" ")), notEmpty)
}

/** The size limit of a file outside the session's folder, which is sent with its bytes. */
export const maxBytes = 16 * 1024 * 1024
const maxSchemaBytes = 1024 * 1024

const failed = (option: string, path: string) => (cause: unknown) =>
  new UsageError({
    message: `${option}: ${oneLine(path, 400)} cannot be read (${codeOf(cause, String(cause))})`
  })

/** A path that was given, as its real path. */
export interface AttachedPath {
  readonly path: string
  readonly name: string
  readonly folder: boolean
  readonly size: number
}

/** Finds the file or folder of `--attach`, before anything is created. */
export const findAttachment = (path: string): Effect.Effect<AttachedPath, UsageError> =>
  Effect.tryPromise({
    try: async () => {
      const real = await realpath(resolve(path))
      const stats = await stat(real)
      return { path: real, name: basename(real), folder: stats.isDirectory(), file: stats.isFile(), size: stats.size }
    },
    catch: failed("--attach", path)
  }).pipe(
    Effect.filterOrFail(
      ({ file, folder }) => file || folder,
      () => new UsageError({ message: `--attach: ${oneLine(path, 400)} is neither file nor folder` })
    )
  )

const isWithin = (directory: string, path: string): boolean => {
  const below = relative(directory, path)
  return below !== ".." && !below.startsWith(`..${sep}`) && !isAbsolute(below)
}

/**
 * Makes the attachment for the runtime. A path in the session's folder is passed by name and read by the rules of that
 * folder. A file outside it is passed with its bytes, because the person named it and not a model.
 */
export const attachment = Effect.fnUntraced(function* (directory: string, { folder, name, path, size }: AttachedPath) {
  const given = { mime: "application/octet-stream", name } satisfies Partial<FileAttachment>
  if (isWithin(directory, path)) return { ...given, uri: pathToFileURL(path).href }
  const refuse = (why: string) => new UsageError({ message: `--attach: ${oneLine(path, 400)} ${why}` })
  const outside = `is outside the session's folder ${oneLine(directory, 400)}`
  if (folder) return yield* refuse(`${outside}: only files can be attached from outside`)
  if (size > maxBytes) return yield* refuse(`${outside}, and is larger than ${maxBytes / 1024 / 1024} MiB`)
  const bytes = yield* Effect.tryPromise({ try: () => readFile(path), catch: failed("--attach", path) })
  return { ...given, uri: `data:${given.mime};base64,${bytes.toString("base64")}` }
})

/** Reads the JSON Schema of the answer. The runtime checks whether it can be used. */
export const readSchema = (path: string): Effect.Effect<OutputFormat, UsageError> =>
  Effect.gen(function* () {
    const refuse = (why: string) => new UsageError({ message: `--output-schema: ${oneLine(path, 400)} ${why}` })
    const unreadable = failed("--output-schema", path)
    const stats = yield* Effect.tryPromise({ try: () => stat(path), catch: unreadable })
    if (!stats.isFile() || stats.size > maxSchemaBytes) return yield* refuse("is not a file of at most 1 MiB")
    const text = yield* Effect.tryPromise({ try: () => readFile(path, "utf8"), catch: unreadable })
    const schema = yield* Effect.try({
      try: (): unknown => JSON.parse(text),
      catch: (cause) => refuse(`is not JSON: ${messageOf(cause)}`)
    })
    if (!Predicate.isReadonlyRecord(schema)) return yield* refuse('is not a JSON Schema with "type": "object"')
    return { schema }
  })

export const parseTool = (given: string): Effect.Effect<readonly [pattern: string, on: boolean], string> => {
  const [, pattern = "", word] = /^([^=]+)=(on|off)$/.exec(given) ?? []
  return word === undefined ? Effect.fail("PATTERN=on or PATTERN=off") : Effect.succeed([pattern, word === "on"])
}
