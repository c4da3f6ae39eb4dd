/**
 * Reading without a trace: nothing is followed that is a link, no folder is listed, and no timestamp changes, not even
 * that of the last access, where the reader may ask for that (the owner may). What belongs to another writer is checked
 * step by step below the root; the root itself is the reader's choice and may be a link.
 * Spec: CL-104, CL-105 in specs/cli.md (AB-2, SC-3, FL-7).
 */
import { isUtf8 } from "node:buffer"
import { closeSync, constants, fstatSync, lstatSync, openSync, readSync, statSync } from "node:fs"
import { join } from "node:path"
import { absent, damaged, Refused, unreadable } from "./Refused.ts"

/** Why the file system refused; empty for an error of ours. */
const errno = (cause: unknown): string =>
  !(cause instanceof Refused) && cause instanceof Error && "code" in cause && typeof cause.code === "string"
    ? cause.code
    : ""

/** The folder behind the root and these segments; `undefined` when it, or one above it, is not there. */
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
    if (!found.isDirectory()) throw damaged(`${path} is no folder of its own`)
  }
  return path
}

/** The root has to be there before anything in it can be missing. */
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

/** Not available on every system; where it is not, the mount's own rule for access times holds. */
const noAtime = "O_NOATIME" in constants && typeof constants.O_NOATIME === "number" ? constants.O_NOATIME : 0

/** What is no regular file must neither be followed nor waited for. */
const reading = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

const open = (path: string): number | undefined => {
  for (const flags of [reading | noAtime, reading]) {
    try {
      const fd = openSync(path, flags)
      if (fstatSync(fd).isFile()) return fd
      closeSync(fd)
      throw damaged(`${path} is no regular file`)
    } catch (cause) {
      const code = errno(cause)
      if (code === "ENOENT") return undefined
      // Only an owner may leave the access time alone.
      if (code === "EPERM" && flags !== reading) continue
      if (code === "ELOOP" || code === "EMLINK") throw damaged(`${path} is a symbolic link`)
      // A socket cannot be opened at all.
      if (code === "ENXIO") throw damaged(`${path} is no regular file`)
      throw code === "" ? cause : unreadable(path, cause)
    }
  }
  throw unreadable(path, "EPERM")
}

/** Opens a file for as long as `use`; `undefined` when it is not there. */
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

/** Bytes as text; what is no UTF-8 is no text, and nothing is put in its place. */
export const decoded = (bytes: Uint8Array, where: string): string => {
  if (!isUtf8(bytes)) throw damaged(`${where} is no UTF-8`)
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8")
}

const chunkSize = 65_536

/**
 * The bytes of a value of any length, a piece at a time, its newline included; nothing when it is not there. That it ends
 * as it has to is known before the first piece. Each piece is the caller's until it asks for more.
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

/** The longest value that is read whole. */
const valueBytes = 1_048_576

/** A small file's text without the newline at its end; `undefined` when it is not there. */
export const value = (path: string): string | undefined =>
  withFile(path, (fd) => {
    const { size } = fstatSync(fd)
    if (size > valueBytes) throw damaged(`${path} is ${size} bytes long, and a value is at most ${valueBytes}`)
    const buffer = Buffer.allocUnsafe(size)
    let at = 0
    for (let read = 1; at < size && read > 0; at += read) read = readSync(fd, buffer, at, size - at, at)
    if (at === 0 || buffer[at - 1] !== newline) throw endless(path)
    return decoded(buffer.subarray(0, at - 1), path)
  })

/** The longest line of a file: longer ones cannot be one value of JSON in memory. */
const lineBytes = 134_217_728

/** An append under way may be seen in part. It is over in less than this; what is torn stays so. */
const patience = { pauses: 40, milliseconds: 25 }

const pause = (): void => {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, patience.milliseconds)
}

/** Whole lines without their newlines; returns false when the file is not there. A last line without newline is torn. */
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
        // The buffer is used again.
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

/** The last line, read from the end: empty when there is none; `undefined` when the file is not there. */
export const lastLine = (path: string): string | undefined =>
  withFile(path, (fd) => {
    for (let pauses = 0; ; pauses++) {
      const { size } = fstatSync(fd)
      if (size === 0) return ""
      // Twice as much each time: what is read again is no more than the line.
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
