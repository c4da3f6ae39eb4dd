/**
 * Keeps whole outputs of commands on disk, in files that only the user can read, within a quota. The text is redacted before it
 * arrives. A short output that nothing was left out of has no file. Spec: SL-60..SL-64 in specs/shell.md.
 */
import { closeSync, existsSync, mkdirSync, openSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs"
import { open } from "node:fs/promises"
import { join } from "node:path"
import { StringDecoder } from "node:string_decoder"
import { Effect, Schema } from "effect"
import type { SessionID } from "@daybook/log/domain/Identifiers"

export interface OutputSettings {
  /** Folder of the files; created with mode 0700. */
  readonly folder: string
  /** Bytes of all files together; 1 GiB by default. The oldest files are removed first. */
  readonly quota?: number
  /** Bytes of one stream of one command; 256 MiB by default. The rest is left out, and the file's last line says so. */
  readonly largest?: number
}

/** A stream of a command. */
export const OutputStream = Schema.Literal("stdout", "stderr")
export type OutputStream = typeof OutputStream.Type

export const OutputPage = Schema.Struct({
  text: Schema.String,
  /** Where the next page begins, in bytes; absent at the end. */
  next: Schema.optionalWith(Schema.Int, { exact: true }),
  /** Bytes of the whole. */
  bytes: Schema.Int
})
export type OutputPage = typeof OutputPage.Type

/** No output is kept under this handle: it was small, it is too old, or there was none. */
export class OutputNotFound extends Schema.TaggedError<OutputNotFound>("@daybook/shell/OutputNotFound")(
  "OutputNotFound",
  { handle: Schema.String }
) {
  override get message() {
    return `no output is kept under ${this.handle}: it was never truncated, or newer outputs took its place`
  }
}

/** Takes the text of one stream. */
export interface OutputFile {
  readonly add: (text: string) => void
  /** Writes what is still in memory, if `keep`; else removes the file. Returns whether the file is kept. */
  readonly end: (keep: boolean) => boolean
}

export interface OutputStore {
  readonly open: (handle: string, stream: OutputStream) => OutputFile
  /** Removes what is kept under the handle. */
  readonly remove: (handle: string) => void
  /** At most `limit` bytes from `offset`; a page ends between two characters. */
  readonly page: (
    handle: string,
    stream: OutputStream,
    offset: number,
    limit: number
  ) => Effect.Effect<OutputPage, OutputNotFound>
}

const mebibyte = 1024 * 1024

/** Characters that stay in memory before a file is created. */
const heldCharacters = 131_072

/** Files of a folder. */
const mostFiles = 4_096

const parts = 64

/** Handles name files: nothing else may be in them. */
const isHandle = (handle: string): boolean => /^[A-Za-z0-9._@:-]{1,200}$/.test(handle) && !handle.startsWith(".")

const fileOf = (folder: string, handle: string, stream: OutputStream) => join(folder, `${handle}.${stream}`)

/** Files of a folder, the newest first. */
const filesOf = (folder: string) =>
  readdirSync(folder)
    .flatMap((name) => {
      const path = join(folder, name)
      const found = statSync(path, { throwIfNoEntry: false })
      return found?.isFile() === true ? [{ path, size: found.size, time: found.mtimeMs }] : []
    })
    .toSorted((a, b) => b.time - a.time)

/** Removes the oldest files beyond the bounds. */
const shrink = (folder: string, bytes: number): void => {
  let total = 0
  for (const [index, { path, size }] of filesOf(folder).entries()) {
    total += size
    if (total > bytes || index >= mostFiles) rmSync(path, { force: true })
  }
}

interface Quota {
  /** Counts what this process adds, and removes old files whenever that is a part of the quota. */
  readonly added: (bytes: number, files: number) => void
}

const makeQuota = (folder: string, quota: number): Quota => {
  const most = { bytes: quota / parts, files: mostFiles / parts }
  // Another process may have left any number of files.
  let now = { bytes: most.bytes, files: most.files }
  return {
    added: (bytes, files) => {
      now = { bytes: now.bytes + bytes, files: now.files + files }
      if (now.bytes < most.bytes && now.files < most.files) return
      now = { bytes: 0, files: 0 }
      shrink(folder, quota)
    }
  }
}

const succeeds = (step: () => void): boolean => {
  try {
    step()
    return true
  } catch {
    return false
  }
}

/** The end of a file whose stream was longer. */
const cutLine = (bytes: number) => `\n[${bytes} more bytes are left out: the file of an output has a limit]\n`

const openFile = (folder: string, largest: number, quota: Quota, path: string): OutputFile => {
  let held: Array<string> = []
  let characters = 0
  let descriptor: number | undefined
  let bytes = 0
  let cut = 0
  let failed = false
  const write = (data: Uint8Array) => {
    if (descriptor === undefined) {
      mkdirSync(folder, { recursive: true, mode: 0o700 })
      descriptor = openSync(path, "wx", 0o600)
      quota.added(0, 1)
    }
    writeFileSync(descriptor, data)
    quota.added(data.length, 0)
  }
  const flush = () => {
    const data = Buffer.from(held.join(""))
    held = []
    characters = 0
    // Leaves out a character that the limit cuts.
    const kept = cut > 0 ? 0 : Buffer.byteLength(new StringDecoder("utf8").write(data.subarray(0, largest - bytes)))
    cut += data.length - kept
    bytes += kept
    if (kept > 0 || descriptor === undefined) write(data.subarray(0, kept))
  }
  // After a failure, for example on a full disk, nothing is kept; the command goes on.
  const attempt = (step: () => void) => {
    if (failed || succeeds(step)) return
    failed = true
    held = []
  }
  return {
    add: (text) => {
      if (failed) return
      held.push(text)
      characters += text.length
      if (characters > heldCharacters) attempt(flush)
    },
    end: (keep) => {
      if (keep) attempt(flush)
      if (keep && cut > 0) attempt(() => write(Buffer.from(cutLine(cut))))
      const opened = descriptor
      if (opened === undefined) return false
      const closed = succeeds(() => closeSync(opened))
      if (keep && !failed && closed) return true
      succeeds(() => rmSync(path, { force: true }))
      return false
    }
  }
}

/** The beginning of the handles of outputs whose commands a session records. */
export const prefixOf = (sessionID: SessionID | undefined): string => (sessionID === undefined ? "" : `${sessionID}.`)

/** Removes the outputs of commands that the session recorded. Returns the files that could not be removed. */
export const removeSession = (folder: string, sessionID: SessionID): ReadonlyArray<string> => {
  const prefix = prefixOf(sessionID)
  const names = existsSync(folder) ? readdirSync(folder).filter((name) => name.startsWith(prefix)) : []
  return names.map((name) => join(folder, name)).filter((path) => !succeeds(() => rmSync(path, { force: true })))
}

const page = (folder: string): OutputStore["page"] =>
  Effect.fn("OutputStore.page")(function* (handle, stream, offset, limit) {
    if (!isHandle(handle)) return yield* new OutputNotFound({ handle })
    const path = fileOf(folder, handle, stream)
    return yield* Effect.tryPromise({
      try: async (): Promise<OutputPage> => {
        const file = await open(path, "r")
        try {
          const { size } = await file.stat()
          // Room for one character, whatever its length.
          const room = Math.max(limit, 4)
          const { buffer, bytesRead } = await file.read(Buffer.alloc(room), 0, room, offset)
          // Leaves out a character that the page cuts.
          const text = new StringDecoder("utf8").write(buffer.subarray(0, bytesRead))
          const next = offset + Buffer.byteLength(text)
          return { text, bytes: size, ...(next < size && text !== "" ? { next } : {}) }
        } finally {
          await file.close()
        }
      },
      catch: () => new OutputNotFound({ handle })
    })
  })

export const make = ({ folder, largest = 256 * mebibyte, quota = 1024 * mebibyte }: OutputSettings): OutputStore => {
  const shared = makeQuota(folder, quota)
  return {
    open: (handle, stream) => openFile(folder, Math.min(largest, quota), shared, fileOf(folder, handle, stream)),
    remove: (handle) => {
      for (const stream of OutputStream.literals)
        succeeds(() => rmSync(fileOf(folder, handle, stream), { force: true }))
    },
    page: page(folder)
  }
}
