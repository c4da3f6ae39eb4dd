/**
 * What a follower says of itself, for other processes: `follower.json` beside its record. The file has its whole length
 * from the start and is written in place, so that a full disk does not keep the follower from saying that it is full.
 * Spec: FI-91 in specs/files.md.
 */
import { open, type FileHandle } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Option, Schema } from "effect"
import { ownFolder } from "./Ledger.ts"
import type { SafeFiles } from "./SafeFiles.ts"

/** What a follower does: it keeps the files current, it tries again after a failure, or it has ended. */
export const FollowerState = Schema.Struct({
  version: Schema.Literal(1),
  pid: Schema.Int,
  state: Schema.Literal("following", "failing", "stopped"),
  /** The last event that the files showed when the state began. */
  position: Schema.Int,
  /** When the state began, in milliseconds. */
  since: Schema.Number,
  /** Why the last attempt failed. */
  error: Schema.optionalWith(Schema.String, { exact: true })
})
export type FollowerState = typeof FollowerState.Type

const Stored = Schema.parseJson(FollowerState)
const decode = Schema.decodeOption(Stored)

/** The length of the file: no state is longer. */
const length = 2_048
const longestError = 400

const pathOf = (uid: number): string => `${ownFolder(uid)}/follower.json`

const textOf = ({ error, ...state }: FollowerState): Buffer =>
  Buffer.from(JSON.stringify(error === undefined ? state : { ...state, error: error.slice(0, longestError) }))

/** Writes the states of the follower of one user; that a state cannot be written keeps nobody from working. */
export const make = (files: SafeFiles, uid: number) => ({
  write: (state: FollowerState): Effect.Effect<void> => {
    const text = textOf(state)
    const padding = Buffer.alloc(Math.max(1, length - text.length), " ")
    padding[padding.length - 1] = 10
    return Effect.ignore(files.overwrite(pathOf(uid), Buffer.concat([text, padding]), 0o600))
  }
})

const readStart = async (path: string): Promise<string> => {
  const file: FileHandle = await open(path)
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, 0)
    return buffer.toString("utf8", 0, bytesRead)
  } finally {
    await file.close()
  }
}

/** What the follower of this user last said under the root; nothing where there is none, or nothing that can be read. */
export const follower = (root: string, uid: number): Effect.Effect<Option.Option<FollowerState>> =>
  Effect.tryPromise(() => readStart(join(root, pathOf(uid)))).pipe(
    Effect.map(decode),
    Effect.orElseSucceed(Option.none)
  )
