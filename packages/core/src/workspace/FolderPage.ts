/** Lists a page of a folder's direct children, folders first, by name. Spec: TO-13, TO-35. */
import * as fs from "node:fs/promises"
import { Effect, Schema } from "effect"
import type { ToolContent } from "@daybook/log/domain/Values"
import { ToolFailure } from "../domain/ToolError.ts"
import { quotedPath } from "../support/TextFile.ts"
import { type Target, tryFile } from "./FileFailure.ts"
import { pageLimits } from "./TextPage.ts"

const position = Schema.Int.pipe(Schema.positive())

const Entry = Schema.Struct({
  name: Schema.String,
  type: Schema.Literal("directory", "file", "symlink", "other")
})
type Entry = typeof Entry.Type

export const DirectoryResult = Schema.Struct({
  type: Schema.Literal("directory"),
  path: Schema.String,
  offset: position,
  total: Schema.Int,
  next: Schema.optionalWith(position, { exact: true }),
  entries: Schema.Array(Entry)
})
export type DirectoryResult = typeof DirectoryResult.Type

/** Larger folders are refused, because sorting needs all entries in memory. */
const maximumEntries = 100_000

const shownName = ({ name, type }: Entry) => quotedPath(type === "directory" ? `${name}/` : name)

export const pastEnd = (target: Target, what: string, total: number, offset: number) =>
  new ToolFailure({
    type: "tool.input",
    message: `"offset" is ${offset}, but ${JSON.stringify(target.resource)} has ${total} ${what}`
  })

const listNames = async (real: string) => {
  const entries: Array<Entry> = []
  for await (const entry of await fs.opendir(real)) {
    const type = entry.isDirectory()
      ? "directory"
      : entry.isFile()
        ? "file"
        : entry.isSymbolicLink()
          ? "symlink"
          : "other"
    entries.push({ name: entry.name, type })
    if (entries.length > maximumEntries) break
  }
  return entries
}

const rank = ({ type }: Entry) => (type === "directory" ? 0 : 1)
const byRankThenName = (a: Entry, b: Entry) => rank(a) - rank(b) || (a.name < b.name ? -1 : 1)

/** The children from the 1-based `offset`. `recheck` fails if the folder was moved or replaced. */
export const listDirectory = Effect.fnUntraced(function* (
  target: Target,
  recheck: Effect.Effect<void, ToolFailure>,
  offset: number,
  limit: number
) {
  const entries = yield* tryFile("list", target.resource, () => listNames(target.real))
  yield* recheck
  if (entries.length > maximumEntries) {
    return yield* new ToolFailure({
      type: "file.tooLarge",
      message: `${JSON.stringify(target.resource)} has more than ${maximumEntries} entries; search it with glob`
    })
  }
  const total = entries.length
  if (offset > Math.max(total, 1)) return yield* pastEnd(target, "entries", total, offset)
  entries.sort(byRankThenName)
  const shown: Array<Entry> = []
  let bytes = 0
  for (const entry of entries.slice(offset - 1, offset - 1 + limit)) {
    bytes += Buffer.byteLength(shownName(entry)) + 1
    if (bytes > pageLimits.bytes) break
    shown.push(entry)
  }
  const next = offset + shown.length
  return DirectoryResult.make({
    type: "directory",
    path: target.resource,
    offset,
    total,
    ...(next > total ? {} : { next }),
    entries: shown
  })
})

/** Remarks after a result. */
export const note = (lines: ReadonlyArray<string>): ReadonlyArray<ToolContent> =>
  lines.length === 0 ? [] : [{ type: "text", text: `[${lines.join(" ")}]` }]

/** A page as the model reads it. */
export const directoryContent = ({ entries, next, offset, total }: DirectoryResult): ReadonlyArray<ToolContent> => {
  const text = entries.map((entry) => `${shownName(entry)}\n`).join("")
  const more = `Entries ${offset} to ${offset + entries.length - 1} of ${total}: continue with offset ${next}.`
  const notices = total === 0 ? ["The folder is empty."] : next === undefined ? [] : [more]
  return [...(text === "" ? [] : [{ type: "text" as const, text }]), ...note(notices)]
}
