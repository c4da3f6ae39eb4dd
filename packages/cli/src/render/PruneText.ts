/** Renders what a prune removes, has removed and put back. Pure. Spec: CL-200, CL-202. */
import type { Cut } from "@daybook/log/retention/Plan"
import { many, sizeText } from "../support/Amounts.ts"
import { oneLine, pad } from "./Plain.ts"

/** The totals of several cuts. */
interface Totals {
  readonly sessions: number
  readonly events: number
  readonly bytes: number
}

export const none: Totals = { sessions: 0, events: 0, bytes: 0 }

export const added = (totals: Totals, { bytes, events }: Pick<Cut, "bytes" | "events">): Totals => ({
  sessions: totals.sessions + (events > 0 ? 1 : 0),
  events: totals.events + events,
  bytes: totals.bytes + bytes
})

const columns = [34, 10, 10, 10] as const

const row = (cells: ReadonlyArray<string>, last: string): string =>
  `${cells.map((cell, index) => pad(cell, columns[index] ?? 0)).join("  ")}  ${last}`.trimEnd() + "\n"

export const heading = row(["SESSION", "EVENTS", "BYTES", "UP TO"], "HELD BACK BY")

/** One session's line of the table. */
export const cutLine = ({ bytes, events, held, sessionID, to }: Cut): string =>
  row(
    [oneLine(sessionID, 110), String(events), sizeText(bytes), events === 0 ? "-" : String(to)],
    held.map(({ after, name }) => `${oneLine(name, 80)} (at ${after})`).join(", ")
  )

/** The fields of a cut for `--json`. */
export const cutJson = ({ bytes, events, floor, held, sessionID, to }: Cut) => ({
  sessionID,
  floor,
  to,
  events,
  bytes,
  held
})

export const totalsLine = ({ bytes, events, sessions }: Totals, frees: number): string =>
  `${many(sessions, "session")}, ${many(events, "event")}, ${sizeText(bytes)} of events; removing them frees an estimated ${sizeText(frees)}\n`
