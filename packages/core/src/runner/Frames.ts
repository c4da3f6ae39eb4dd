/**
 * What frames a session's requests, written down when it changes. The last frames are kept, so that only what changed is
 * written; after a restart, or when another process framed requests meanwhile, a changed frame is written whole.
 * Spec: RQ-30..RQ-33.
 */
import type { Draft } from "../events/SessionEvents.ts"
import type { SessionID } from "../Identifiers.ts"
import { framed, hashOf, type Frame } from "../request/Frame.ts"
import type { Session } from "../session/Message.ts"

/** Sessions whose last frame is kept. */
const keptFrames = 64

export const make = () => {
  const kept = new Map<SessionID, { readonly hash: string; readonly frame: Frame }>()
  /** The event for this request's frame, none when the last request was framed alike. */
  return ({ frame: stored, id }: Session, frame: Frame): ReadonlyArray<Draft> => {
    const hash = hashOf(frame)
    const before = kept.get(id)
    kept.delete(id)
    kept.set(id, { hash, frame })
    const oldest = kept.size > keptFrames ? kept.keys().next().value : undefined
    if (oldest !== undefined) kept.delete(oldest)
    return hash === stored
      ? []
      : [framed(frame, hash, before !== undefined && before.hash === stored ? before.frame : undefined)]
  }
}
