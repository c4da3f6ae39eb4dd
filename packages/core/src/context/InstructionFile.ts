/**
 * Reads one instruction file safely: it may be hostile, huge, a device, or a loop of links. Only a regular file inside
 * the required folder is read, up to a limit, and its text is always well-formed. An unchanged file is not read again.
 * Spec: CX-33..CX-37 in specs/context.md (EP-11).
 */
import { constants } from "node:fs"
import * as fs from "node:fs/promises"
import { Effect } from "effect"
import { isMissing, isWithin, quotedPath, readAtMost, realpath, stampOf } from "../support/TextFile.ts"
import { warnOnce } from "@daybook/log/support/LoggedOnce"
import { codeOf } from "@daybook/log/support/SystemError"

/** Longer files are truncated to this length. */
export const maximumBytes = 128 * 1024
/** Cache limits, in files and bytes; an unchanged cached file costs one `stat`. */
const keptFiles = 512
const keptBytes = 16 * 1024 * 1024

/** A file's text, with notes about truncation and invalid bytes. */
export interface InstructionFile {
  /** Absolute, without symbolic links. */
  readonly real: string
  readonly text: string
}

/** `Refused` counts as absent for the model; the reason is logged. */
export type ReadResult =
  | { readonly _tag: "Found"; readonly file: InstructionFile }
  | { readonly _tag: "Absent" }
  | { readonly _tag: "Refused"; readonly why: string }
  | { readonly _tag: "Unreadable"; readonly why: string }

const nothing: ReadResult = { _tag: "Absent" }

/** Error codes of a missing file, including names that cannot exist. */
const missing: ReadonlySet<string> = new Set(["ENOENT", "ENOTDIR", "ENAMETOOLONG", "ERR_INVALID_ARG_VALUE"])

const faultOf = (cause: unknown): ReadResult => {
  const code = codeOf(cause)
  if (missing.has(code)) return nothing
  if (code === "ELOOP") return { _tag: "Refused", why: "it leads through a loop of symbolic links" }
  return { _tag: "Unreadable", why: `the system returned ${code}` }
}

const strict = new TextDecoder("utf-8", { fatal: true })
const lenient = new TextDecoder("utf-8")

/** Drops the bytes of a character that the cut split. */
const wholeCharacters = (bytes: Uint8Array): Uint8Array => {
  let end = bytes.length
  // A character has at most three continuation bytes.
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

/** Decodes bytes as text and appends notes about changes. Pure. */
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

type CachedText = { readonly stamp: string; readonly text: string }

const special: ReadResult = { _tag: "Refused", why: "it is not a regular file" }

/** The path of an open file according to the system; undefined where the system does not provide it. */
const descriptorPath = (handle: fs.FileHandle) => fs.readlink(`/proc/self/fd/${handle.fd}`).catch(() => undefined)

/** A reader with its own cache. `read` never fails and never waits for a writer. */
export const makeReader = () => {
  const kept = new Map<string, CachedText>()
  const warn = warnOnce()
  let bytes = 0

  const forget = (real: string) => {
    bytes -= kept.get(real)?.text.length ?? 0
    kept.delete(real)
  }
  const keep = (real: string, entry: CachedText) => {
    forget(real)
    kept.set(real, entry)
    bytes += entry.text.length
    for (const oldest of kept.keys()) {
      if (kept.size <= keptFiles && bytes <= keptBytes) break
      forget(oldest)
    }
  }

  const readReal = async (real: string): Promise<ReadResult> => {
    const before = await fs.lstat(real, { bigint: true })
    if (!before.isFile()) return special
    const known = kept.get(real)
    if (known?.stamp === stampOf(before)) return { _tag: "Found", file: { real, text: known.text } }
    // Follows no link and waits for no writer, in case the file was replaced by a link or a pipe.
    const flags = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0)
    const handle = await fs.open(real, flags)
    try {
      const stats = await handle.stat({ bigint: true })
      if (!stats.isFile()) return special
      const actual = await descriptorPath(handle)
      const same = actual === undefined ? stats.ino === before.ino && stats.dev === before.dev : actual === real
      if (!same) return { _tag: "Unreadable", why: "it was replaced while it was opened" }
      // One byte more than is shown reveals that the file is longer.
      const text = decodeInstructions(await readAtMost(handle, maximumBytes + 1))
      keep(real, { stamp: stampOf(stats), text })
      return { _tag: "Found", file: { real, text } }
    } finally {
      await handle.close()
    }
  }

  /** Reads a file. With `within`, its real path must lie in that folder. An empty file counts as absent. */
  const read = Effect.fnUntraced(function* (name: string, within?: string) {
    if (isMissing(name)) return nothing
    const found = yield* Effect.promise(async (): Promise<ReadResult> => {
      try {
        const real = await realpath(name)
        return within !== undefined && !isWithin(within, real)
          ? { _tag: "Refused", why: `its real path is outside ${quotedPath(within)}` }
          : await readReal(real)
      } catch (cause) {
        return faultOf(cause)
      }
    })
    if (found._tag === "Refused") yield* warn(`${quotedPath(name)} is not read: ${found.why}`)
    if (found._tag === "Unreadable") yield* warn(`${quotedPath(name)} cannot be read: ${found.why}`)
    return found._tag === "Found" && found.file.text === "" ? nothing : found
  })

  return { read }
}

export type InstructionReader = ReturnType<typeof makeReader>
