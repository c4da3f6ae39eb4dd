/**
 * Reads small text files of untrusted origin: agents, templates, configuration. Reads only regular files, bounded, in
 * UTF-8. Never waits for a pipe, and follows no link out of the required folder. Spec: CF-1, EX-112.
 */
import { type BigIntStats, constants, lstatSync } from "node:fs"
import * as fs from "node:fs/promises"
import * as path from "node:path"
import { Effect, Schema } from "effect"
import { codeOf } from "@daybook/log/support/SystemError"

// Formats paths as lines of a result. Pure.

const breaksLine = /\p{Cc}|["\\]/u

/** The path unchanged, or as a JSON string if it contains a newline or anything else that could be misread. */
export const quotedPath = (name: string): string => (breaksLine.test(name) ? JSON.stringify(name) : name)

// Finds the real path of a file: a few `lstat` calls cost a tenth of a round trip through the thread pool.

const missing = (name: string): Error =>
  Object.assign(new Error(`ENOENT: no such file or directory, realpath '${name}'`), {
    code: "ENOENT",
    syscall: "realpath",
    path: name
  })

/** Whether an absolute path exists and leads through no symbolic link; `unknown` if that cannot be told. */
const look = (name: string): "canonical" | "missing" | "unknown" => {
  const parent = path.dirname(name)
  if (parent === name) return "canonical"
  // Looks at the whole path first: for a missing file this needs one call.
  const stats = lstatSync(name, { throwIfNoEntry: false })
  if (stats === undefined) return "missing"
  return stats.isSymbolicLink() ? "unknown" : look(parent)
}

const found = (name: string): ReturnType<typeof look> => {
  // Elsewhere a file system may ignore case, and the real path then has the case of the folder's entries.
  if (process.platform !== "linux" || !path.isAbsolute(name) || path.resolve(name) !== name) return "unknown"
  try {
    return look(name)
  } catch {
    return "unknown"
  }
}

/** Whether nothing has this name, as far as that is known without a round trip. */
export const isMissing = (name: string): boolean => found(name) === "missing"

/** Like `realpath` of `node:fs/promises`, with the same errors. */
export const realpath = async (name: string): Promise<string> => {
  switch (found(name)) {
    case "canonical":
      return name
    case "missing":
      throw missing(name)
    case "unknown":
      return fs.realpath(name)
  }
}

/** Why a file was not read: it is missing, or it was rejected. `details` is a clause about the file, for people. */
export class TextFileError extends Schema.TaggedError<TextFileError>("@daybook/core/TextFileError")("TextFileError", {
  path: Schema.String,
  reason: Schema.Literal("missing", "refused"),
  details: Schema.String
}) {
  override get message() {
    return `${this.path}: ${this.details}`
  }
}

export interface ReadOptions {
  readonly maxBytes: number
  /** The canonical folder that must contain the file's real path. */
  readonly within?: string | undefined
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: "it does not exist",
  ENOTDIR: "a part of its path is not a folder",
  EACCES: "its permissions do not allow it to be read",
  EPERM: "its permissions do not allow it to be read",
  ELOOP: "it leads through a loop of symbolic links",
  ENAMETOOLONG: "its name is too long"
}

/** Converts a file system error to one that names the path. */
const fileError = (file: string, cause: unknown): TextFileError => {
  const code = codeOf(cause)
  return new TextFileError({
    path: file,
    reason: code === "ENOENT" || code === "ENOTDIR" ? "missing" : "refused",
    details: reasons[code] ?? `it cannot be read (${code})`
  })
}

export const tryFile = <A>(file: string, run: () => Promise<A>): Effect.Effect<A, TextFileError> =>
  Effect.tryPromise({ try: run, catch: (cause) => fileError(file, cause) })

export const isWithin = (root: string, real: string): boolean =>
  real === root || real.startsWith(root.endsWith(path.sep) ? root : root + path.sep)

/** A stamp that changes when a file is written or replaced. */
export const stampOf = ({ ctimeNs, dev, ino, mtimeNs, size }: BigIntStats): string =>
  [dev, ino, size, mtimeNs, ctimeNs].join(":")

const utf8 = new TextDecoder("utf-8", { fatal: true })

/** Reads a file from its start to its end, or to the limit. Files without a size (in /proc) are read too. */
export const readAtMost = async (handle: fs.FileHandle, maxBytes: number): Promise<Uint8Array> => {
  const buffer = new Uint8Array(maxBytes)
  let length = 0
  while (length < buffer.length) {
    const { bytesRead } = await handle.read(buffer, length, buffer.length - length, length)
    if (bytesRead === 0) break
    length += bytesRead
  }
  return buffer.subarray(0, length)
}

/** The text of a file, without a byte order mark. */
export const readText = Effect.fn("TextFile.readText")(function* (file: string, { maxBytes, within }: ReadOptions) {
  const refuse = (details: string) => new TextFileError({ path: file, reason: "refused", details })
  const real = yield* tryFile(file, () => fs.realpath(file))
  if (within !== undefined && !isWithin(within, real)) {
    return yield* refuse("it leads out of its project through a symbolic link")
  }
  const before = yield* tryFile(file, () => fs.lstat(real))
  if (!before.isFile()) return yield* refuse(before.isDirectory() ? "it is a folder" : "it is not a regular file")
  const tooLarge = refuse(`it is larger than ${maxBytes.toLocaleString("en")} bytes`)
  if (before.size > maxBytes) return yield* tooLarge
  // Follows no link and waits for no writer, in case the file was replaced by a link or a pipe.
  const flags = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0)
  const bytes = yield* Effect.acquireUseRelease(
    tryFile(file, () => fs.open(real, flags)),
    (handle) =>
      Effect.gen(function* () {
        const stats = yield* tryFile(file, () => handle.stat())
        if (stats.ino !== before.ino || stats.dev !== before.dev)
          return yield* refuse("it was replaced while it was read")
        // One byte more than is allowed shows that the file is too long.
        return yield* tryFile(file, () => readAtMost(handle, maxBytes + 1))
      }),
    (handle) => Effect.promise(() => handle.close())
  )
  if (bytes.length > maxBytes) return yield* tooLarge
  const text = yield* Effect.try({ try: () => utf8.decode(bytes), catch: () => refuse("it is not UTF-8 text") })
  return text.includes("\0") ? yield* refuse("it holds a NUL character, so it is not text") : text
})
