/**
 * Collects the files that a session read and modified from its settled tool calls, across all compactions. Pure.
 * Spec: CP-19 to CP-22.
 */
import { Predicate } from "effect"
import type { Message, ToolPart } from "@daybook/log/domain/Message"
import { referencePrefix } from "../workspace/ToolOutputStore.ts"

/** Maximum paths per list in a checkpoint. */
export const maxFiles = 500
const maxPathChars = 1_000

export interface FileSet {
  /** Sorted by code unit. */
  readonly paths: ReadonlyArray<string>
  /** Number of earlier paths dropped by the limit so far; a path dropped twice counts twice. */
  readonly leftOut: number
}

/** A modified file is not listed as read. */
export interface TouchedFiles {
  readonly read: FileSet
  readonly modified: FileSet
}

const nothing: FileSet = { paths: [], leftOut: 0 }
export const noFiles: TouchedFiles = { read: nothing, modified: nothing }

/** Paths are listed one per line: multi-line, tag-like and overlong values are rejected. */
const isListable = (path: unknown): path is string =>
  Predicate.isString(path) && path !== "" && path.length <= maxPathChars && !/[\n\r<>]/.test(path)

/** The path in the first of these fields that holds one. */
const pathIn = (record: Readonly<Record<string, unknown>> | undefined, ...fields: ReadonlyArray<string>) =>
  record === undefined ? undefined : fields.map((field) => record[field]).find(isListable)

/** The path in the result, else in the call: imported sessions have no structured results. */
const targetOf = ({ input, structured }: ToolPart): string | undefined =>
  pathIn(structured, "path") ?? pathIn(input, "path", "file_path", "filePath")

const patched = ({ structured }: ToolPart): ReadonlyArray<string> => {
  const files = structured?.["files"]
  if (!Array.isArray(files)) return []
  return files.filter(Predicate.isRecord).flatMap((file) => [file["path"], file["movedTo"]].filter(isListable))
}

/** A folder's listing and a stored tool output are not project files. */
const readsFile = ({ input, structured }: ToolPart): boolean =>
  structured?.["type"] !== "directory" &&
  [pathIn(structured, "path"), pathIn(input, "path")].every((path) => path?.startsWith(referencePrefix) !== true)

type Touched = { readonly read: ReadonlyArray<string>; readonly modified: ReadonlyArray<string> }
const untouched: Touched = { read: [], modified: [] }

const touchedBy = (part: ToolPart): Touched => {
  if (part.state !== "completed") return untouched
  const target = targetOf(part)
  const one = target === undefined ? [] : [target]
  switch (part.name) {
    case "read":
    case "read_file":
      return readsFile(part) ? { read: one, modified: [] } : untouched
    case "write":
    case "write_file":
    case "edit":
      return { read: [], modified: one }
    case "apply_patch":
      return { read: [], modified: patched(part) }
    default:
      // For example `list_directory`: listing a folder does not read a file.
      return untouched
  }
}

/** Distinct paths, ordered by last use. */
const latest = (paths: ReadonlyArray<string>): ReadonlyArray<string> => [...new Set(paths.toReversed())].toReversed()

/** Keeps the newest paths within the limit. */
const bounded = (paths: ReadonlyArray<string>, leftOut: number): FileSet => {
  const kept = paths.slice(-maxFiles)
  return { paths: kept.toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0)), leftOut: leftOut + paths.length - kept.length }
}

/** The files that these messages touched, added to those of earlier checkpoints. */
export const fileOperations = (messages: ReadonlyArray<Message>, previous: TouchedFiles): TouchedFiles => {
  const touched = messages.flatMap((message) =>
    message.type === "assistant" ? message.content.filter((part) => part.type === "tool").map(touchedBy) : []
  )
  const modified = latest([...previous.modified.paths, ...touched.flatMap((one) => one.modified)])
  const isModified = new Set(modified)
  const read = latest([...previous.read.paths, ...touched.flatMap((one) => one.read)])
  return {
    read: bounded(
      read.filter((path) => !isModified.has(path)),
      previous.read.leftOut
    ),
    modified: bounded(modified, previous.modified.leftOut)
  }
}
