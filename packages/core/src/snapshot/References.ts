/**
 * Keeps snapshots by a file for each session and snapshot, in the form of a git reference. The time of the file is the
 * time when the snapshot was last taken. The store's lock is held during each change. Spec: UN-7, UN-9, UN-40 in
 * specs/sessions.md.
 */
import { statSync } from "node:fs"
import * as fs from "node:fs/promises"
import * as path from "node:path"
import { Effect } from "effect"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import { stampOf } from "../support/TextFile.ts"
import type { SnapshotUnavailable } from "./SnapshotError.ts"
import { hash, tryFiles } from "./StoreFolder.ts"

// Remembers the tree of a published index in a file beside the index, so that a snapshot of unchanged files writes
// nothing.

const beside = (index: string) => `${index}.tree`

const identity = (index: string): string | undefined => {
  const stats = statSync(index, { bigint: true, throwIfNoEntry: false })
  return stats === undefined ? undefined : stampOf(stats)
}

/** Notes the tree of an index that was just published. `temporary` is a file that does not exist yet. */
export const remember = (index: string, tree: string, temporary: string) =>
  tryFiles("keeping the index", async () => {
    await fs.writeFile(temporary, `${tree} ${identity(index) ?? ""}`, { mode: 0o600 })
    await fs.rename(temporary, beside(index))
  })

/** The tree of an index; undefined if it is not known. */
export const known = (index: string): Effect.Effect<string | undefined> =>
  Effect.promise(async () => {
    const text = await fs.readFile(beside(index), "utf8").catch(() => "")
    const [tree, stamp] = text.split(" ")
    return stamp !== undefined && stamp !== "" && stamp === identity(index) ? tree : undefined
  })

export interface Reference {
  readonly store: string
  /** The session's key: session ids may hold what the name of a reference may not. */
  readonly key: string
  readonly tree: string
  /** When it was last taken, in milliseconds since the epoch. */
  readonly time: number
}

export const keyOf = (sessionID: SessionID): string => hash(sessionID)

/** Names one taking of a snapshot: taken again, it has another name. */
export const nameOf = ({ key, time, tree }: Reference): string => `${key} ${tree} ${time}`

const folderOf = (store: string) => path.join(store, "refs", "daybook")

const fileOf = ({ key, store, tree }: Omit<Reference, "time">) => path.join(folderOf(store), key, tree)

/** Names in a folder; none if it does not exist. */
const namesIn = (folder: string) =>
  fs.readdir(folder).catch((cause: unknown) => {
    if (cause instanceof Error && "code" in cause && cause.code === "ENOENT") return []
    throw cause
  })

/** Keeps a snapshot for a session. `temporary` is a file of the store that does not exist yet. */
export const keep = (reference: Omit<Reference, "time">, temporary: string): Effect.Effect<void, SnapshotUnavailable> =>
  tryFiles("keeping the snapshot", async () => {
    const file = fileOf(reference)
    await fs.mkdir(path.dirname(file), { recursive: true, mode: 0o700 })
    await fs.writeFile(temporary, `${reference.tree}\n`, { mode: 0o600 })
    await fs.rename(temporary, file)
  })

export const keysIn = (store: string): Effect.Effect<ReadonlyArray<string>, SnapshotUnavailable> =>
  tryFiles("listing the snapshots", () => namesIn(folderOf(store)))

export const references = (store: string): Effect.Effect<ReadonlyArray<Reference>, SnapshotUnavailable> =>
  tryFiles("listing the snapshots", async () => {
    const found: Array<Reference> = []
    for (const key of await namesIn(folderOf(store))) {
      for (const tree of await namesIn(path.join(folderOf(store), key))) {
        const { mtimeMs } = await fs.stat(path.join(folderOf(store), key, tree))
        found.push({ store, key, tree, time: mtimeMs })
      }
    }
    return found
  })

export const drop = (dropped: ReadonlyArray<Omit<Reference, "time">>): Effect.Effect<void, SnapshotUnavailable> =>
  tryFiles("dropping snapshots", async () => {
    for (const reference of dropped) {
      await fs.rm(fileOf(reference), { force: true })
      await fs.rmdir(path.dirname(fileOf(reference))).catch(() => undefined)
    }
  })
