/**
 * Judges from looks at its row whether a session's owner is alive. Spec: EX-O2, EX-O3, EX-402.
 */
import type { SessionID } from "../domain/Identifiers.ts"
import * as Lease from "./Lease.ts"
import type { OwnProcess } from "./OwnerID.ts"
import type { OwnerRow } from "./OwnerRows.ts"

/** Whether a session may be claimed: `unknown` until its owner renews, is seen at work, or stays silent for its lease. */
export type Standing = "free" | "owned" | "unknown"

/** Judges a row that was read at a time of the monotonic clock. */
export type Judge = (row: OwnerRow, at: bigint) => Standing

/** This process as an owner. */
export interface Self {
  readonly process: OwnProcess
  readonly ownerID: string
  /** The sessions that it owns, with their epochs. */
  readonly held: ReadonlyMap<SessionID, number>
}

/** Changes with each renewal. A process of 0.1.0 renews only `lease_until`. */
const signOf = ({ lease_beat, lease_until, owner_epoch, owner_id }: OwnerRow): string =>
  [owner_id, owner_epoch, lease_beat, lease_until].join(" ")

/** A judge for one wait: it remembers its earlier looks at each row. */
export const make = ({ held, ownerID, process }: Self): Judge => {
  const seen = new Map<SessionID, Lease.Sighting>()
  return (row, at) => {
    const { lease_ms, owner_epoch, owner_id, session_id } = row
    if (owner_id === null) return "free"
    // A row of this process that it does not hold could not be released.
    if (owner_id === ownerID) return held.get(session_id) === owner_epoch ? "owned" : "free"
    const state = process.stateOf(owner_id)
    if (state === "gone") return "free"
    const working = state === "working"
    const sighting = Lease.observe(seen.get(session_id), { sign: signOf(row), at, working })
    seen.set(session_id, sighting)
    if (sighting.silentMs >= Lease.clamp(lease_ms)) return "free"
    return working || sighting.renewed ? "owned" : "unknown"
  }
}
