/**
 * Which files a session has read and modified, out of its settled tool calls, summed up over all compactions. Pure.
 * Spec: CP-19 to CP-22.
 */
import { Predicate } from "effect"
import type { Message, ToolPart } from "../session/Message.ts"
import { referencePrefix } from "../tool/ToolOutputStore.ts"

/** Paths that a checkpoint names of each kind. */
export const maxFiles = 500
const maxPathChars = 1_000

export interface FileSet {
  /** Sorted by code unit. */
  readonly paths: ReadonlyArray<string>
  /** How many earlier ones the bound has left out so far; a path left out twice counts twice. */
  readonly leftOut: number
}

/** What was modified is not listed as read. */
export interface FileOperations {
  readonly read: FileSet
  readonly modified: FileSet
}

const nothing: FileSet = { paths: [], leftOut: 0 }
export const noFiles: FileOperations = { read: nothing, modified: nothing }

/** Paths go into lists of lines: what is no line, or too long to be of use, is no path. */
const isListable = (path: unknown): path is string =>
  Predicate.isString(path) && path !== "" && path.length <= maxPathChars && !/[\n\r<>]/.test(path)

/** The first of these fields that holds a path. */
const pathIn = (record: Readonly<Record<string, unknown>> | undefined, ...fields: ReadonlyArray<string>) =>
  record === undefined ? undefined : fields.map((field) => record[field]).find(isListable)

/** What the result says, else what the call asked for: imported sessions hold no facts beside the text. */
const targetOf = ({ input, structured }: ToolPart): string | undefined =>
  pathIn(structured, "path") ?? pathIn(input, "path", "file_path", "filePath")

const patched = ({ structured }: ToolPart): ReadonlyArray<string> => {
  const files = structured?.["files"]
  if (!Array.isArray(files)) return []
  return files.filter(Predicate.isRecord).flatMap((file) => [file["path"], file["movedTo"]].filter(isListable))
}

/** A folder's listing and a kept tool output are no files of the project. */
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
      // Among them `list_directory`: to list a folder is not to read a file.
      return untouched
  }
}

/** Distinct paths, the last use of each deciding its place. */
const latest = (paths: ReadonlyArray<string>): ReadonlyArray<string> => [...new Set(paths.toReversed())].toReversed()

/** Over the bound the newest stay. */
const bounded = (paths: ReadonlyArray<string>, leftOut: number): FileSet => {
  const kept = paths.slice(-maxFiles)
  return { paths: kept.toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0)), leftOut: leftOut + paths.length - kept.length }
}

/** What these messages touched, added to what earlier checkpoints name. */
export const fileOperations = (messages: ReadonlyArray<Message>, previous: FileOperations): FileOperations => {
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
