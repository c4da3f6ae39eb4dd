/** The files of a session's `context/`, for the last step of its pack. Spec: FI-40..FI-59 in specs/files.md. */
import { SessionID, type EventLog, type ReadError, type SessionStore, type StoreError } from "@daybook/core"
import { Effect } from "effect"
import { blobPath } from "./context/Blobs.ts"
import { contextFiles } from "./context/ContextFiles.ts"
import { contextInput } from "./context/ContextInput.ts"
import type { PackState } from "./context/PackState.ts"

/** The folder of the context in the session's folder. */
export const contextPrefix = "context/"

/** Folders of the context that exist only while they hold something, inner ones first. */
export const contextFolders = ["swap", "dedup/blob", "dedup"].map((name) => `${contextPrefix}${name}`)

const contextNames = new Set(
  [
    "pack.json",
    "pack.md",
    "summary.md",
    "todo.md",
    "budget",
    "refs.jsonl",
    "swap/index.jsonl",
    "dedup/index.jsonl"
  ].map((name) => `${contextPrefix}${name}`)
)

/** Whether the context may have a file of that name, relative to the session's folder. */
export const isContextName = (name: string): boolean =>
  contextNames.has(name) || /^context\/dedup\/blob\/sha256-[0-9a-f]{64}$/.test(name)

/** The file of bytes that a row names, relative to the session's folder. */
export const blobFile = (hash: string): string => `${contextPrefix}${blobPath(hash)}`

/**
 * Names relative to the session's folder, with their contents, none before the first step; and the state, which knows the
 * hashes of swapped lines from now on: they are read once.
 */
export const contextOf = <E>(
  sessionID: string,
  /** Its name in its address. */
  session: string,
  state: PackState,
  /** The SHA-256 of bytes of `messages.jsonl`. */
  digest: (at: number, bytes: number) => Effect.Effect<string, E>
): Effect.Effect<
  { readonly files: ReadonlyMap<string, string | Uint8Array>; readonly state: PackState },
  E | ReadError | StoreError,
  EventLog | SessionStore
> =>
  Effect.map(contextInput({ sessionID: SessionID.make(sessionID), session, state, digest }), ({ input, state }) => ({
    state,
    files: new Map(
      [...(input === undefined ? [] : contextFiles(input))].map(([path, content]) => [
        `${contextPrefix}${path}`,
        content
      ])
    )
  }))
