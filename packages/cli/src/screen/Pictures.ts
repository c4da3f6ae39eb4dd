/**
 * Pictures in the editor. A terminal pastes text, and gives the path of a file that is dropped on it: the path of a picture
 * becomes the chip `[picture PATH]`, and so does a picture of the clipboard (`Clipboard.ts`). Only chips of this screen attach a picture, so that a pasted text attaches none.
 * Spec: SC-550, SC-551.
 */
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs"
import { readFile, stat } from "node:fs/promises"
import { homedir, tmpdir } from "node:os"
import { basename, extname, isAbsolute, join } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"
import type { FileAttachment } from "@daybook/log/domain/Values"
import { maxBytes } from "../arguments/PromptWords.ts"
import { UsageError } from "../support/Errors.ts"

const mimes: Readonly<Record<string, string>> = {
  ".gif": "image/gif",
  ".jpeg": "image/jpeg",
  ".jpg": "image/jpeg",
  ".png": "image/png",
  ".webp": "image/webp"
}
const mimeOf = (path: string): string | undefined => mimes[extname(path).toLowerCase()]

/** A path as terminals write it when a file is dropped: in quotes, with backslashes, or as a `file:` address. */
const unquoted = (text: string): string | undefined => {
  const quoted = /^(['"])(.*)\1$/.exec(text)?.[2]
  if (quoted !== undefined) return quoted
  if (!text.startsWith("file:")) return text.replaceAll(/\\(.)/g, "$1")
  try {
    return fileURLToPath(text)
  } catch {
    return undefined
  }
}

const isFile = (path: string): boolean => {
  try {
    return statSync(path).isFile()
  } catch {
    return false
  }
}

/** The chip of a pasted path, if it is the path of a picture. */
export const chipOf = (pasted: string): string | undefined => {
  const text = pasted.trim()
  if (text.length > 4_096 || /[\r\n\]]/.test(text)) return undefined
  const written = unquoted(text)
  if (written === undefined) return undefined
  const path = written.startsWith("~/") ? join(homedir(), written.slice(2)) : written
  return isAbsolute(path) && mimeOf(path) !== undefined && isFile(path) ? `[picture ${path}]` : undefined
}

/** A pasted text, or the chip in place of a picture's path. Notes the chip. */
export const withChip = (pasted: string, chips: Set<string>): string => {
  const chip = chipOf(pasted)
  if (chip === undefined) return pasted
  chips.add(chip)
  return chip
}

/** A folder of this process, which is made with its first picture. */
export const folder = () => {
  let path: string | undefined
  let count = 0
  return {
    /** Keeps a picture, and returns its path. */
    keep: (bytes: Uint8Array): string => {
      path ??= mkdtempSync(join(tmpdir(), "daybook-"))
      const file = join(path, `clipboard-${++count}.png`)
      writeFileSync(file, bytes, { mode: 0o600 })
      return file
    },
    remove: () => {
      if (path !== undefined) rmSync(path, { recursive: true, force: true })
    }
  }
}

/** The pictures whose chips a prompt contains, with their bytes: the session may run on another machine. */
export const attached = (
  text: string,
  chips: ReadonlySet<string>
): Effect.Effect<ReadonlyArray<FileAttachment>, UsageError> => {
  const found = [...text.matchAll(/\[picture (\/[^\]\r\n]+)\]/g)].filter(([chip]) => chips.has(chip))
  return Effect.forEach(found, ({ 0: chip, 1: path = "", index }) =>
    Effect.gen(function* () {
      const refuse = (why: string) => new UsageError({ message: `the picture ${path} ${why}` })
      const unreadable = () => refuse("cannot be read")
      const { size } = yield* Effect.tryPromise({ try: () => stat(path), catch: unreadable })
      if (size > maxBytes) return yield* refuse(`is larger than ${maxBytes / 1024 / 1024} MiB`)
      const bytes = yield* Effect.tryPromise({ try: () => readFile(path), catch: unreadable })
      const mime = mimeOf(path) ?? "application/octet-stream"
      const source = { start: index, end: index + chip.length, text: chip }
      return { uri: `data:${mime};base64,${bytes.toString("base64")}`, mime, name: basename(path), source }
    })
  )
}
