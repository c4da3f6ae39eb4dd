/**
 * Reads the input of `context/` for one session at its last step: the history at that step, by keys, and the hashes of
 * swapped lines, each computed once. The cost follows what is shown. Spec: FI-53, FI-57 in specs/files.md.
 */
import { Effect } from "effect"
import { historyAt } from "@daybook/core/request/Recorded"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import type { EventLog, ReadError } from "@daybook/log/log/EventLog"
import type { SessionStore } from "@daybook/log/store/SessionStore"
import type { StoreError } from "@daybook/log/store/StoreError"
import type { ContextInput } from "./ContextFiles.ts"
import { sentOf } from "./Pack.ts"
import type { PackState } from "./PackState.ts"

/** The session, its state, and the access to its lines. */
export interface ContextOptions<E> {
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
