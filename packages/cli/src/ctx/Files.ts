/**
 * Finds the requested session, and reads its files without side effects: follows no link, lists no folder, and changes
 * no timestamp; access times stay only if the reader owns the file. Every path segment below the root is checked; the
 * root itself may be a link. Spec: CL-101, CL-104..CL-106 in specs/cli.md (AB-2, IX-1..IX-5, SC-3, FL-7).
 */
import { isUtf8 } from "node:buffer"
import { closeSync, constants, fstatSync, lstatSync, openSync, readSync, statSync } from "node:fs"
import { join } from "node:path"
import {
  absent,
  cwdHash,
  damaged,
  defaultSession,
  type House,
  houseSegments,
  houseWords,
  isSessionName,
  Refused,
  unreadable
} from "./Options.ts"

/** The error code of the file system; empty for our own errors. */
const errno = (cause: unknown): string =>
  !(cause instanceof Refused) && cause instanceof Error && "code" in cause && typeof cause.code === "string"
    ? cause.code
    : ""

/** The folder at these segments below the root; `undefined` if it or a parent does not exist. */
export const folder = (root: string, segments: ReadonlyArray<string>): string | undefined => {
  let path = root
  for (const segment of segments) {
    path = join(path, segment)
    let found
    try {
      found = lstatSync(path, { throwIfNoEntry: false })
    } catch (cause) {
      throw unreadable(path, cause)
    }
    if (found === undefined) return undefined
    if (!found.isDirectory()) throw damaged(`${path} is not a real folder`)
  }
  return path
}

export const checkRoot = (root: string): void => {
  let found
  try {
    found = statSync(root, { throwIfNoEntry: false })
  } catch (cause) {
    throw unreadable(root, cause)
  }
  if (found === undefined) {
    throw absent(`there are no session files at ${root} yet; daybook serve and daybook files export write them`)
  }
  if (!found.isDirectory()) throw unreadable(root, "no folder")
}

/** Not available on every system; without it, the mount's rule for access times holds. */
const noAtime = "O_NOATIME" in constants && typeof constants.O_NOATIME === "number" ? constants.O_NOATIME : 0

/** Never follows a link and never blocks on a file that is not regular. */
const reading = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

const open = (path: string): number | undefined => {
  for (const flags of [reading | noAtime, reading]) {
    try {
      const fd = openSync(path, flags)
      if (fstatSync(fd).isFile()) return fd
      closeSync(fd)
      throw damaged(`${path} is not a regular file`)
    } catch (cause) {
      const code = errno(cause)
      if (code === "ENOENT") return undefined
      // Only the owner may keep the access time unchanged.
      if (code === "EPERM" && flags !== reading) continue
      if (code === "ELOOP" || code === "EMLINK") throw damaged(`${path} is a symbolic link`)
      // A socket cannot be opened.
      if (code === "ENXIO") throw damaged(`${path} is not a regular file`)
      throw code === "" ? cause : unreadable(path, cause)
    }
  }
  throw unreadable(path, "EPERM")
}

/** Opens a file while `use` runs; `undefined` if it does not exist. */
const withFile = <A>(path: string, use: (fd: number) => A): A | undefined => {
  const fd = open(path)
  if (fd === undefined) return undefined
  try {
    return use(fd)
  } catch (cause) {
    throw errno(cause) === "" ? cause : unreadable(path, cause)
  } finally {
    closeSync(fd)
  }
}

const newline = 0x0a

/** Bytes as text; bytes that are not UTF-8 are an error, never replaced. */
export const decoded = (bytes: Uint8Array, where: string): string => {
  if (!isUtf8(bytes)) throw damaged(`${where} is not UTF-8`)
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8")
}

const chunkSize = 65_536

/**
 * The bytes of a value of any length, piece by piece, with its newline; nothing if the file does not exist. The final newline is
 * checked before the first piece. A piece is valid until the next one is requested.
 */
export function* pieces(path: string): Generator<Buffer, boolean> {
  const fd = open(path)
  if (fd === undefined) return false
  try {
    const buffer = Buffer.allocUnsafe(chunkSize)
    const { size } = fstatSync(fd)
    if (size === 0 || readSync(fd, buffer, 0, 1, size - 1) === 0 || buffer[0] !== newline) throw endless(path)
    for (;;) {
      const read = readSync(fd, buffer, 0, chunkSize, null)
      if (read === 0) return true
      yield buffer.subarray(0, read)
    }
  } catch (cause) {
    throw errno(cause) === "" ? cause : unreadable(path, cause)
  } finally {
    closeSync(fd)
  }
}

const endless = (path: string): Refused => damaged(`${path} has no newline at its end`)

/** The maximum size of a value that is read whole. */
const valueBytes = 1_048_576

/** A small file's text without its final newline; `undefined` if the file does not exist. */
export const value = (path: string): string | undefined =>
  withFile(path, (fd) => {
    const { size } = fstatSync(fd)
    if (size > valueBytes) throw damaged(`${path} has ${size} bytes; a value has at most ${valueBytes}`)
    const buffer = Buffer.allocUnsafe(size)
    let at = 0
    for (let read = 1; at < size && read > 0; at += read) read = readSync(fd, buffer, at, size - at, at)
    if (at === 0 || buffer[at - 1] !== newline) throw endless(path)
    return decoded(buffer.subarray(0, at - 1), path)
  })

/** The longest line of a file: longer ones cannot be one JSON value in memory. */
const lineBytes = 134_217_728

/** A reader may see an unfinished append. An append takes less time than this; a line that is still open then is torn. */
const patience = { pauses: 40, milliseconds: 25 }

const pause = (): void => {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, patience.milliseconds)
}

/** Whole lines without newlines; returns false if the file does not exist. A last line without newline is torn. */
export function* lines(path: string): Generator<Buffer, boolean> {
  const fd = open(path)
  if (fd === undefined) return false
  try {
    const buffer = Buffer.allocUnsafe(chunkSize)
    let begun: Array<Buffer> = []
    let length = 0
    let number = 1
    let pauses = 0
    for (;;) {
      const read = readSync(fd, buffer, 0, chunkSize, null)
      if (read === 0) {
        if (length === 0) return true
        if (pauses++ >= patience.pauses) throw damaged(`${path}, line ${number}: its end is missing`)
        pause()
        continue
      }
      pauses = 0
      let from = 0
      for (let end = buffer.indexOf(newline); end >= 0 && end < read; end = buffer.indexOf(newline, from)) {
        const part = buffer.subarray(from, end)
        yield begun.length === 0 ? part : Buffer.concat([...begun, part])
        begun = []
        length = 0
        number += 1
        from = end + 1
      }
      if (from < read) {
        // The buffer is reused.
        begun.push(Buffer.from(buffer.subarray(from, read)))
        length += read - from
        if (length > lineBytes) throw damaged(`${path}, line ${number} is longer than ${lineBytes} bytes`)
      }
    }
  } catch (cause) {
    throw errno(cause) === "" ? cause : unreadable(path, cause)
  } finally {
    closeSync(fd)
  }
}

/** The last line, read from the end: empty if there is none; `undefined` if the file does not exist. */
export const lastLine = (path: string): string | undefined =>
  withFile(path, (fd) => {
    for (let pauses = 0; ; pauses++) {
      const { size } = fstatSync(fd)
      if (size === 0) return ""
      // Doubles the length each time, so that at most the line is read twice.
      for (let length = Math.min(chunkSize, size); ; length = Math.min(length * 2, size)) {
        const tail = Buffer.allocUnsafe(length)
        const read = readSync(fd, tail, 0, length, size - length)
        if (read < length || tail[length - 1] !== newline) break
        const before = length < 2 ? -1 : tail.lastIndexOf(newline, length - 2)
        if (before >= 0 || length === size) {
          return decoded(tail.subarray(before + 1, length - 1), `${path}: its last line`)
        }
        if (length > lineBytes) throw damaged(`${path}: its last line is longer than ${lineBytes} bytes`)
      }
      if (pauses >= patience.pauses) throw damaged(`${path}: the end of its last line is missing`)
      pause()
    }
  })

/** The existing sessions of an agent or a model. */
export interface Sessions {
  readonly root: string
  readonly house: House
  readonly segments: ReadonlyArray<string>
}

/** The requested sessions; an error if there are none. */
export const openSessions = (root: string, house: House): Sessions => {
  checkRoot(root)
  const segments = houseSegments(house)
  if (folder(root, segments) === undefined) {
    throw absent(`there are no sessions of ${houseWords(house)} at ${root}`)
  }
  return { root, house, segments }
}

/** The name in a file of the index. It becomes part of a path, so an invalid name is an error. */
const indexed = ({ root, segments }: Sessions, ...names: ReadonlyArray<string>): string | undefined => {
  const index = folder(root, [...segments, "index", ...names.slice(0, -1)])
  if (index === undefined) return undefined
  const path = join(index, names.at(-1) ?? "")
  const name = value(path)
  if (name !== undefined && !isSessionName(name)) throw damaged(`${path} does not contain a session's name`)
  return name
}

/** The index's folder; `undefined` if it does not exist. */
export const indexFolder = ({ root, segments }: Sessions) => folder(root, [...segments, "index"])

/** The current session's name, else the default one's. */
export const currentName = (sessions: Sessions): string => indexed(sessions, "current") ?? defaultSession

/** A session's folder; an error if it does not exist. */
export const sessionFolder = (sessions: Sessions, name: string): string => {
  const found = folder(sessions.root, [...sessions.segments, name])
  if (found !== undefined) return found
  throw absent(
    `there is no session ${name} of ${houseWords(sessions.house)}; ctx sessions ${sessions.house.name} lists them`
  )
}

/** The session of a working folder. The index is a hint: the session's own file decides (IX-5). */
export const sessionOfCwd = (sessions: Sessions, cwd: string): string => {
  const name = indexed(sessions, "by-cwd", cwdHash(cwd))
  const path = name === undefined ? undefined : folder(sessions.root, [...sessions.segments, name])
  if (name !== undefined && path !== undefined && value(join(path, "cwd")) === cwd) return name
  throw absent(`no session of ${houseWords(sessions.house)} works in ${cwd}`)
}

/** A value of a session that must exist, because its first export writes it. */
export const needed = (path: string, name: string): string => {
  const found = value(join(path, name))
  if (found === undefined) throw damaged(`${join(path, name)} is missing`)
  return found
}

/** The title in `meta.json`; it is only shown. */
export const title = (path: string): string | undefined => {
  const text = needed(path, "meta.json")
  try {
    const meta: unknown = JSON.parse(text)
    if (typeof meta === "object" && meta !== null && !Array.isArray(meta)) {
      const found = "title" in meta ? meta.title : undefined
      return typeof found === "string" ? found : undefined
    }
  } catch {
    // Reported below.
  }
  throw damaged(`${join(path, "meta.json")} is not a JSON object`)
}
