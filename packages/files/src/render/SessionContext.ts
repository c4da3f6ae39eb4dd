/**
 * Renders the files of a session's `context/` for the last step of its pack. Spec: FI-44..FI-57 in specs/files.md.
 */
import { Effect } from "effect"
import { historyAt } from "@daybook/core/request/Recorded"
import { SessionID } from "@daybook/log/domain/Identifiers"
import { contextFiles } from "../context/ContextFiles.ts"
import { blobPath, sentOf } from "../context/Pack.ts"
import type { PackState } from "../context/PackState.ts"

// Reads the input of `context/` for one session at its last step, at the cost of what is shown.

/** The session, its state, and the access to its lines. */
interface ContextOptions<E> {
  readonly sessionID: SessionID
  /** The session's name in its address. */
  readonly session: string
  readonly state: PackState
  /** The SHA-256, in hex, of `bytes` bytes of `messages.jsonl` at the offset. */
  readonly digest: (at: number, bytes: number) => Effect.Effect<string, E>
}

/** The input, and the state with the hashes; no input before the first step. */
export const contextInput = Effect.fn("Context.input")(function* <E>({
  digest,
  session,
  sessionID,
  state
}: ContextOptions<E>) {
  const sent = sentOf(state)
  if (sent === undefined) return { state, input: undefined }
  const swaps = yield* Effect.forEach(state.swaps, (swap) =>
    swap.sha256 === undefined
      ? Effect.map(digest(swap.at, swap.bytes), (sha256) => ({ ...swap, sha256 }))
      : Effect.succeed({ ...swap, sha256: swap.sha256 })
  )
  const history = yield* historyAt(sessionID, { baselineSeq: sent.frame.baselineSeq, before: sent.step.seq })
  return { state: { ...state, swaps }, input: { session, state, sent, swaps, history } }
})

/** The context folder within the session's folder. */
export const contextPrefix = "context/"

/** Context folders that exist only while they hold files, inner ones first. */
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

/** Whether the name, relative to the session's folder, is one of a context file. */
export const isContextName = (name: string): boolean =>
  contextNames.has(name) || /^context\/dedup\/blob\/sha256-[0-9a-f]{64}$/.test(name)

/** The file of a blob, relative to the session's folder. */
export const blobFile = (hash: string): string => `${contextPrefix}${blobPath(hash)}`

/**
 * The context files by name, relative to the session's folder; empty before the first step. The returned state holds
 * the hashes of swapped lines, so that each is computed once.
 */
export const contextOf = <E>(options: ContextOptions<E>) =>
  Effect.map(contextInput(options), ({ input, state }) => ({
    state,
    files: new Map(
      [...(input === undefined ? [] : contextFiles(input))].map(([path, content]) => [
        `${contextPrefix}${path}`,
        content
      ])
    )
  }))
