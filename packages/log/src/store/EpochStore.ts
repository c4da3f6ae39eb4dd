/** Reads a session's context epoch from its events; `SqlEpochStore.ts` implements it. Spec: CX-51, CX-53. */
import { Context, type Effect } from "effect"
import type { SessionID } from "../domain/Identifiers.ts"
import type { Snapshot } from "../domain/Snapshot.ts"
import type { EventUnreadable, LogUnavailable } from "../log/EventLog.ts"
import type { ContextMarks } from "./ContextRows.ts"

/** A session's epoch, and where its shown history begins. */
export interface StoredEpoch {
  readonly baseline: string
  readonly snapshot: Snapshot
  /** The baseline contains the System messages up to this sequence number. */
  readonly baselineSeq: number
  /** Sequence number of the latest completed compaction, or -1. */
  readonly compactedSeq: number
  /** Sequence number of the latest System message, or -1. */
  readonly toldSeq: number
}

export class EpochStore extends Context.Tag("@daybook/log/EpochStore")<
  EpochStore,
  {
    /** The session's epoch; undefined until a request introduces one, also after a move. Fresh marks save a read. */
    readonly get: (
      sessionID: SessionID,
      marks?: ContextMarks
    ) => Effect.Effect<StoredEpoch | undefined, EventUnreadable | LogUnavailable>
  }
>() {}
