/** Computes the id of a run. Pure. Spec: FI-20 in specs/files.md (FR-9). */
import { createHash } from "node:crypto"
import type { RunID } from "./Rows.ts"

/**
 * The id of the run that began with the prompt of this message id; of a run without a prompt, the argument is the
 * activity id. It is known before the run begins and is the same in every process.
 */
export const runOf = (sessionID: string, of: string): RunID =>
  `ctx-${createHash("sha256").update(`${sessionID}/${of}`).digest("hex").slice(0, 32)}`
