/** Which sessions a sweep wakes. Spec: CU-3. */
import type { SessionID } from "@daybook/log/domain/Identifiers"

/** Maximum number of sessions that one sweep wakes. */
export const page = 100

/** The next sessions after the last that was woken, of sorted ids, and from the first again after the last. */
export const turn = (ids: ReadonlyArray<SessionID>, after: SessionID | undefined): ReadonlyArray<SessionID> => {
  const begin = after === undefined ? 0 : ids.findIndex((id) => id > after)
  return begin <= 0 ? ids.slice(0, page) : [...ids.slice(begin), ...ids.slice(0, begin)].slice(0, page)
}
