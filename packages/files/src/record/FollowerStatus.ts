/**
 * Writes and reads `follower.json`, the status of a follower for other processes. The file has its full length from the
 * start and is written in place, so that a follower can report a full disk. Spec: FI-91 in specs/files.md.
 */
import { type FileHandle, open as openFile } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Option, Schema } from "effect"
import type { SafeFiles } from "../disk/SafeFiles.ts"
import { ownFolder } from "./LedgerFile.ts"

/** The status of a follower: following, failing and retrying, or stopped. */
export const FollowerState = Schema.Struct({
  version: Schema.Literal(1),
  pid: Schema.Int,
  state: Schema.Literal("following", "failing", "stopped"),
  /** The position that the files had reached when the state began. */
  position: Schema.Int,
  /** When the state began, in milliseconds since the epoch. */
  since: Schema.Finite,
  /** Why the last attempt failed. */
  error: Schema.optionalWith(Schema.String, { exact: true })
})
export type FollowerState = typeof FollowerState.Type

const Stored = Schema.parseJson(FollowerState)
const decode = Schema.decodeOption(Stored)

/** The fixed length of the file in bytes. */
const length = 2_048
const longestError = 400

const pathOf = (uid: number): string => `${ownFolder(uid)}/follower.json`

const textOf = ({ error, ...state }: FollowerState): Buffer =>
  Buffer.from(JSON.stringify(error === undefined ? state : { ...state, error: error.slice(0, longestError) }))

/** Writes the status of one user's follower; a failed write is ignored. */
export const make = (files: SafeFiles, uid: number) => ({
  write: (state: FollowerState): Effect.Effect<void> => {
    const text = textOf(state)
    const padding = Buffer.alloc(Math.max(1, length - text.length), " ")
    padding[padding.length - 1] = 10
    return Effect.ignore(files.overwrite(pathOf(uid), Buffer.concat([text, padding]), 0o600))
  }
})

const readStart = async (path: string): Promise<string> => {
  const file: FileHandle = await openFile(path)
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, 0)
    return buffer.toString("utf8", 0, bytesRead)
  } finally {
    await file.close()
  }
}

/** Reads the status of this user's follower under the root; none if the file is absent or unreadable. */
export const follower = (root: string, uid: number): Effect.Effect<Option.Option<FollowerState>> =>
  Effect.tryPromise(() => readStart(join(root, pathOf(uid)))).pipe(
    Effect.map(decode),
    Effect.orElseSucceed(Option.none)
  )
