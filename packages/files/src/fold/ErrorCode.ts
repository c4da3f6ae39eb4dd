/** From the kinds of stored errors, an open set, to the few errno names that clients act on. Pure. Spec: FI-34 (FR-5). */
import type { ErrorCode } from "../Rows.ts"

const codes: Readonly<Record<string, ErrorCode>> = {
  // Whoever worked on it is gone.
  "process.ended": "EHOSTDOWN",
  // Not allowed, or declined by a person.
  "permission.denied": "EACCES",
  "path.outside": "EACCES",
  declined: "EACCES",
  "task.declined": "EACCES",
  BudgetExceeded: "EACCES",
  PriceUnknown: "EACCES",
  "task.depth": "EACCES",
  // Not there.
  "file.missing": "ENOENT",
  "agent.missing": "ENOENT",
  "reference.missing": "ENOENT",
  "tool.unknown": "ENOENT",
  AgentNotFound: "ENOENT",
  SessionNotFound: "ENOENT",
  ModelResolutionError: "ENOENT",
  // Wrong as it was asked.
  "tool.input": "EINVAL",
  "tool.name": "EINVAL",
  "tool.call": "EINVAL",
  "path.invalid": "EINVAL",
  "file.invalid": "EINVAL",
  "file.binary": "EINVAL",
  "file.remote": "EINVAL",
  "file.special": "EINVAL",
  "edit.refused": "EINVAL",
  "patch.invalid": "EINVAL",
  "output.schema": "EINVAL",
  "output.invalid": "EINVAL",
  StructuredOutputFailed: "EINVAL",
  "not-compactable": "EINVAL",
  // Larger than the model takes.
  "context-overflow": "EMSGSIZE",
  // Somebody else is at it, or was meanwhile.
  SessionBusy: "EBUSY",
  OwnerLost: "EBUSY",
  SeqConflict: "EBUSY",
  "tool.stale": "EBUSY"
}

/** The code of a stored error's type; `EIO` for every kind that has none of its own. */
export const codeOf = (type: string): ErrorCode => (Object.hasOwn(codes, type) ? (codes[type] ?? "EIO") : "EIO")
