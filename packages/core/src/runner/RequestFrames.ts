/**
 * Decides when a request's frame is recorded, and how much of it. Recent frames are cached so that a change stores only
 * its difference. After a restart, or after another process framed a request, a changed frame is stored whole.
 * Spec: RQ-30..RQ-33.
 */
import type { SessionID } from "@daybook/log/domain/Identifiers"
import type { Session } from "@daybook/log/domain/Message"
import type { Draft } from "@daybook/log/events/SessionEvents"
import type { Epoch } from "../context/ContextEpoch.ts"
import { framed, hashOf, type RequestFrame } from "../request/RequestFrame.ts"

/** Maximum number of sessions in the cache. */
const keptFrames = 64

export const make = () => {
  const kept = new Map<SessionID, { readonly hash: string; readonly frame: RequestFrame }>()
  /** The event for this request's frame; empty when the previous request had the same frame and baseline. */
  return (
    { frame: stored, id }: Pick<Session, "frame" | "id">,
    frame: RequestFrame,
    epoch: Epoch
  ): ReadonlyArray<Draft> => {
    const hash = hashOf(frame)
    const before = kept.get(id)
    kept.delete(id)
    kept.set(id, { hash, frame })
    const oldest = kept.size > keptFrames ? kept.keys().next().value : undefined
    if (oldest !== undefined) kept.delete(oldest)
    const baseline = epoch.state === "new" ? epoch : undefined
    return hash === stored && baseline === undefined
      ? []
      : [framed(frame, hash, before !== undefined && before.hash === stored ? before.frame : undefined, baseline)]
  }
}
