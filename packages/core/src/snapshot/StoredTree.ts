/**
 * Remembers the tree of a published index in a file beside it, so that a snapshot of unchanged files writes nothing. The
 * file names the index by its identity: a file that names another index is ignored. Spec: UN-7.
 */
import { statSync } from "node:fs"
import * as fs from "node:fs/promises"
import { Effect } from "effect"
import { stampOf } from "../support/TextFile.ts"
import { tryFiles } from "./StoreFolder.ts"

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
