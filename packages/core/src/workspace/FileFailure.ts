/** Phrases refusals and errors of the file system for the model. */
import type { Stats } from "node:fs"
import type { FileHandle } from "node:fs/promises"
import { Effect } from "effect"
import { codeOf } from "@daybook/log/support/SystemError"
import { ToolFailure } from "../domain/ToolError.ts"

// Defines what a path from a model leads to.

/** A path inside the Location, or a named reference. */
export interface Target {
  /** Absolute, without symbolic links. */
  readonly real: string
  /** Its name for permissions and people: relative to the Location, `.` for the Location itself. */
  readonly resource: string
  /** The requested path, relative to the same folder, before links were followed. */
  readonly spelled: string
  /** The canonical folder that it must stay in, if not the Location. */
  readonly root?: string
}

/** The call's spelling of its targets, for `Permission`. */
export const spellings = (targets: ReadonlyArray<Target>): ReadonlyMap<string, string> =>
  new Map(targets.map(({ resource, spelled }) => [resource, spelled]))

/** A path that may not exist yet. */
export interface WritableTarget extends Target {
  /** The existing file; undefined if there is none. */
  readonly stats: Stats | undefined
  /** Whether the given path ends in a symbolic link to it. */
  readonly link: boolean
}

export interface OpenFile {
  readonly handle: FileHandle
  readonly stats: Stats
}

export const refuse = (type: string, message: string) => new ToolFailure({ type, message })

export const quoted = (name: string) => JSON.stringify(name.length > 300 ? `${name.slice(0, 300)}...` : name)

const reasons: Readonly<Record<string, string>> = {
  ENOENT: "it does not exist",
  ENOTDIR: "a part of its path is not a folder",
  EACCES: "its permissions do not allow it",
  EPERM: "its permissions do not allow it",
  ELOOP: "it leads through a loop of symbolic links",
  ENAMETOOLONG: "its name is too long",
  EISDIR: "it is a folder",
  EROFS: "the disk is read-only",
  ENOSPC: "the disk is full",
  EMFILE: "too many files are open",
  EEXIST: "it already exists",
  EIO: "the disk failed"
}

/** A file system error as a sentence for the model. */
export const fileFailure = (verb: string, name: string, cause: unknown): ToolFailure => {
  const code = codeOf(cause)
  return refuse(
    code === "ENOENT" ? "file.missing" : "file.access",
    `cannot ${verb} ${quoted(name)}: ${reasons[code] ?? "the system refused it"} (${code})`
  )
}

/** Runs a file operation and converts its error to a failure that names the file. */
export const tryFile = <A>(verb: string, name: string, run: () => Promise<A>): Effect.Effect<A, ToolFailure> =>
  Effect.tryPromise({ try: run, catch: (cause) => fileFailure(verb, name, cause) })

export const special = (name: string) =>
  refuse(
    "file.special",
    `${quoted(name)} is neither a regular file nor a folder; devices, pipes and sockets are refused`
  )
