/** The name of a run: what a client calls one activity of a session. Pure. Spec: FI-20 in specs/files.md (FR-9). */
import { createHash } from "node:crypto"
import type { RunID } from "./Rows.ts"

/**
 * The run that began with the prompt of this message id, or, when it began without one, the run of this activity id.
 * It can be told before the run begins, and is the same in every process.
 */
export const runOf = (sessionID: string, of: string): RunID =>
  `ctx-${createHash("sha256").update(`${sessionID}/${of}`).digest("hex").slice(0, 32)}`
