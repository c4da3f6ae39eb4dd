/**
 * Keeps whole outputs of commands on disk, in files that only the user can read, within a quota. The text is redacted before it
 * arrives. A short output that nothing was left out of has no file. Spec: SL-60..SL-64 in specs/shell.md.
 */
import { closeSync, mkdirSync, openSync, readdirSync, rmSync, statSync, writeSync } from "node:fs"
import { open } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Schema } from "effect"
import { StringDecoder } from "node:string_decoder"

export interface OutputSettings {
  /** Folder of the files; created with mode 0700. */
  readonly folder: string
  /** Bytes of all files together; 1 GiB by default. The oldest go first. */
  readonly quota?: number
  /** Bytes of one stream of one command; 256 MiB by default. */
  readonly largest?: number
}

/** A stream of a command. */
export const OutputStream = Schema.Literal("stdout", "stderr")
export type OutputStream = typeof OutputStream.Type

/** A part of a whole output. */
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
  /** Writes what is still in memory, if `keep`; else removes the file. Returns whether the whole is on disk. */
  readonly end: (keep: boolean) => boolean
}

export interface OutputStore {
  readonly open: (handle: string, stream: OutputStream) => OutputFile
  /** At most `limit` bytes from `offset`; a page ends between two characters. */
  readonly page: (
    handle: string,
    stream: OutputStream,
    offset: number,
    limit: number
  ) => Effect.Effect<OutputPage, OutputNotFound>
}

/** Characters that stay in memory before a file is created. */
const heldCharacters = 131_072

/** Handles name files: nothing else may be in them. */
const isHandle = (handle: string): boolean => /^[A-Za-z0-9._@:-]{1,200}$/.test(handle) && !handle.startsWith(".")

const fileOf = (folder: string, handle: string, stream: OutputStream) => join(folder, `${handle}.${stream}`)

/** Removes the oldest files until the rest fits. */
const shrink = (folder: string, quota: number): void => {
  const files = readdirSync(folder).flatMap((name) => {
    const path = join(folder, name)
    const found = statSync(path, { throwIfNoEntry: false })
    return found?.isFile() === true ? [{ path, size: found.size, time: found.mtimeMs }] : []
  })
  let total = files.reduce((sum, { size }) => sum + size, 0)
  for (const { path, size } of files.toSorted((a, b) => a.time - b.time)) {
    if (total <= quota) return
    rmSync(path, { force: true })
    total -= size
  }
}

const openFile = (
  { folder, largest = 256 * 1024 * 1024, quota = 1024 ** 3 }: OutputSettings,
  path: string
): OutputFile => {
  let held: Array<string> = []
  let characters = 0
  let descriptor: number | undefined
  let bytes = 0
  let complete = true
  const flush = () => {
    if (descriptor === undefined) {
      mkdirSync(folder, { recursive: true, mode: 0o700 })
      shrink(folder, quota)
      descriptor = openSync(path, "wx", 0o600)
    }
    const text = Buffer.from(held.join(""))
    held = []
    characters = 0
    const room = Math.max(0, largest - bytes)
    if (text.length > room) complete = false
    bytes += writeSync(descriptor, text.subarray(0, room))
  }
  const release = () => {
    if (descriptor !== undefined) closeSync(descriptor)
    descriptor = undefined
  }
  return {
    add: (text) => {
      held.push(text)
      characters += text.length
      if (characters <= heldCharacters) return
      // A full disk must not end the command: its output is then not whole.
      try {
        flush()
      } catch {
        complete = false
        held = []
        characters = 0
      }
    },
    end: (keep) => {
      try {
        if (keep) flush()
        release()
        if (!keep) rmSync(path, { force: true })
      } catch {
        complete = false
      }
      return keep && complete
    }
  }
}

export const make = (settings: OutputSettings): OutputStore => ({
  open: (handle, stream) => openFile(settings, fileOf(settings.folder, handle, stream)),
  page: Effect.fn("OutputStore.page")(function* (handle, stream, offset, limit) {
    if (!isHandle(handle)) return yield* new OutputNotFound({ handle })
    const path = fileOf(settings.folder, handle, stream)
    return yield* Effect.tryPromise({
      try: async (): Promise<OutputPage> => {
        const file = await open(path, "r")
        try {
          const { size } = await file.stat()
          const { buffer, bytesRead } = await file.read(Buffer.alloc(limit), 0, limit, offset)
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
})
