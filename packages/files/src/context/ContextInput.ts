/**
 * What the files of `context/` are made of, read for one session at its last step: the history as it was then, by keys, and
 * the hashes of swapped lines, each read once. Costs what is shown. Spec: FI-53, FI-57 in specs/files.md.
 */
import {
  historyAt,
  type EventLog,
  type ReadError,
  type SessionID,
  type SessionStore,
  type StoreError
} from "@daybook/core"
import { Effect } from "effect"
import type { ContextInput } from "./ContextFiles.ts"
import { sentOf } from "./Pack.ts"
import type { PackState } from "./PackState.ts"

/** For whom, and how to read what was written. */
export interface ContextOptions<E> {
  readonly sessionID: SessionID
  /** Its name in its address. */
  readonly session: string
  readonly state: PackState
  /** The SHA-256, in hex, of that many bytes of `messages.jsonl` from that byte on. */
  readonly digest: (at: number, bytes: number) => Effect.Effect<string, E>
}

/** The input, and the state that knows the hashes; no input while nothing was shown. */
export const contextInput = Effect.fn("Context.input")(function* <E>({
  digest,
  session,
  sessionID,
  state
}: ContextOptions<E>): Effect.fn.Return<
  { readonly state: PackState; readonly input: ContextInput | undefined },
  E | ReadError | StoreError,
  EventLog | SessionStore
> {
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
