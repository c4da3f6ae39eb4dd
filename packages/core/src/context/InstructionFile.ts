/**
 * Reads one file of instructions that may be anything: hostile, huge, a device, a loop of links. Only a regular file is
 * read, up to a bound, and only inside the folder it has to lie in; its text is always well-formed. A file that did not
 * change is not read again. Spec: specs/context.md CX-33..CX-37 (EP-11).
 */
import { constants } from "node:fs"
import * as fs from "node:fs/promises"
import { Effect } from "effect"
import { isWithin, stampOf } from "../config/TextFile.ts"
import { shownPath } from "../tool/builtin/ShownPath.ts"
import { warnOnce } from "./WarnOnce.ts"

/** More of a file is not shown. */
export const maximumBytes = 128 * 1024
/** Files whose text is kept, and the bytes of them: unchanged ones cost a `stat`. */
const keptFiles = 512
const keptBytes = 16 * 1024 * 1024

/** A file's text with what must be said about it. */
export interface InstructionFile {
  /** Absolute, without symbolic links. */
  readonly real: string
  readonly text: string
}

/** `Refused` is absent for the model; why is in the log. */
export type Read =
  | { readonly _tag: "Found"; readonly file: InstructionFile }
  | { readonly _tag: "Absent" }
  | { readonly _tag: "Refused"; readonly why: string }
  | { readonly _tag: "Unreadable"; readonly why: string }

const nothing: Read = { _tag: "Absent" }

const codeOf = (cause: unknown): string =>
  cause instanceof Error && "code" in cause && typeof cause.code === "string" ? cause.code : "unknown"

/** Nothing there; a name that cannot be there counts as well. */
const missing: ReadonlySet<string> = new Set(["ENOENT", "ENOTDIR", "ENAMETOOLONG", "ERR_INVALID_ARG_VALUE"])

const faultOf = (cause: unknown): Read => {
  const code = codeOf(cause)
  if (missing.has(code)) return nothing
  if (code === "ELOOP") return { _tag: "Refused", why: "it leads through a loop of symbolic links" }
  return { _tag: "Unreadable", why: `the system refused it (${code})` }
}

const strict = new TextDecoder("utf-8", { fatal: true })
const lenient = new TextDecoder("utf-8")

/** Without the bytes of a character that the cut went through. */
const wholeCharacters = (bytes: Uint8Array): Uint8Array => {
  let end = bytes.length
  // A character has at most three bytes after its first.
  for (let back = 1; back <= 3 && back <= bytes.length; back++) {
    const byte = bytes[bytes.length - back] ?? 0
    if (byte < 0x80) break
    if (byte >= 0xc0) {
      const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2
      if (length > back) end = bytes.length - back
      break
    }
  }
  return bytes.subarray(0, end)
}

/** Bytes as text, with sentences about what is not as it was written. Pure. */
export const decodeInstructions = (bytes: Uint8Array, limit = maximumBytes): string => {
  const cut = bytes.length > limit
  const shown = cut ? wholeCharacters(bytes.subarray(0, limit)) : bytes
  const notes: Array<string> = []
  let text: string
  try {
    text = strict.decode(shown)
  } catch {
    text = lenient.decode(shown)
    notes.push("Bytes that are not UTF-8 are shown as U+FFFD.")
  }
  if (text.includes("\0")) {
    text = text.replaceAll("\0", "\uFFFD")
    notes.push("NUL characters are shown as U+FFFD.")
  }
  if (cut) notes.push(`Cut after ${limit} bytes; there is more that is not shown.`)
  const body = text.trim()
  return body === "" || notes.length === 0 ? body : `${body}\n[${notes.join(" ")}]`
}

const readAll = async (handle: fs.FileHandle): Promise<Uint8Array> => {
  // One byte more than is shown tells that there is more; a file without a size (in /proc) is read to its end too.
  const buffer = Buffer.allocUnsafe(maximumBytes + 1)
  let size = 0
  while (size < buffer.length) {
    const { bytesRead } = await handle.read(buffer, size, buffer.length - size, size)
    if (bytesRead === 0) break
    size += bytesRead
  }
  return buffer.subarray(0, size)
}

interface Kept {
  readonly stamp: string
  readonly text: string
}

const special: Read = { _tag: "Refused", why: "it is no regular file" }

/** The path of an open file as the system sees it; undefined where it does not tell. */
const descriptorPath = (handle: fs.FileHandle) => fs.readlink(`/proc/self/fd/${handle.fd}`).catch(() => undefined)

/** A reader with a memory of its own. `read` never fails and never waits for a writer. */
export const makeReader = () => {
  const kept = new Map<string, Kept>()
  const warn = warnOnce()
  let bytes = 0

  const forget = (real: string) => {
    bytes -= kept.get(real)?.text.length ?? 0
    kept.delete(real)
  }
  const keep = (real: string, entry: Kept) => {
    forget(real)
    kept.set(real, entry)
    bytes += entry.text.length
    for (const oldest of kept.keys()) {
      if (kept.size <= keptFiles && bytes <= keptBytes) break
      forget(oldest)
    }
  }

  const readReal = async (real: string): Promise<Read> => {
    const before = await fs.lstat(real, { bigint: true })
    if (!before.isFile()) return special
    const known = kept.get(real)
    if (known?.stamp === stampOf(before)) return { _tag: "Found", file: { real, text: known.text } }
    // Neither follows a link nor waits for a writer, should the file have become a link or a pipe since.
    const flags = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0)
    const handle = await fs.open(real, flags)
    try {
      const stats = await handle.stat({ bigint: true })
      if (!stats.isFile()) return special
      const actual = await descriptorPath(handle)
      const same = actual === undefined ? stats.ino === before.ino && stats.dev === before.dev : actual === real
      if (!same) return { _tag: "Unreadable", why: "it was replaced while it was opened" }
      const text = decodeInstructions(await readAll(handle))
      keep(real, { stamp: stampOf(stats), text })
      return { _tag: "Found", file: { real, text } }
    } finally {
      await handle.close()
    }
  }

  /** Reads a file; given `within`, its real path has to lie there. An empty file is absent. */
  const read = Effect.fnUntraced(function* (name: string, within?: string) {
    const found = yield* Effect.promise(async (): Promise<Read> => {
      try {
        const real = await fs.realpath(name)
        return within !== undefined && !isWithin(within, real)
          ? { _tag: "Refused", why: `it leads out of ${shownPath(within)}` }
          : await readReal(real)
      } catch (cause) {
        return faultOf(cause)
      }
    })
    if (found._tag === "Refused") yield* warn(`${shownPath(name)} is not read: ${found.why}`)
    if (found._tag === "Unreadable") yield* warn(`${shownPath(name)} cannot be read: ${found.why}`)
    return found._tag === "Found" && found.file.text === "" ? nothing : found
  })

  return { read }
}

export type InstructionReader = ReturnType<typeof makeReader>
