/** Maps the types of stored errors, an open set, to the errno names that clients act on. Pure. Spec: FI-34 (FR-5). */
import type { ErrorCode } from "../row/Rows.ts"

const codes: Readonly<Record<string, ErrorCode>> = {
  // The working process ended.
  "process.ended": "EHOSTDOWN",
  // Forbidden, or declined by a person.
  "permission.denied": "EACCES",
  "path.outside": "EACCES",
  declined: "EACCES",
  "task.declined": "EACCES",
  BudgetExceeded: "EACCES",
  PriceUnknown: "EACCES",
  "task.depth": "EACCES",
  // Not found.
  "file.missing": "ENOENT",
  "agent.missing": "ENOENT",
  "reference.missing": "ENOENT",
  "tool.unknown": "ENOENT",
  AgentNotFound: "ENOENT",
  SessionNotFound: "ENOENT",
  ModelResolutionError: "ENOENT",
  // Invalid input.
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
  // Exceeds the model's context.
  "context-overflow": "EMSGSIZE",
  // Busy, or changed by another writer.
  SessionBusy: "EBUSY",
  OwnerLost: "EBUSY",
  SeqConflict: "EBUSY",
  "tool.stale": "EBUSY"
}

/** The code of a stored error's type; `EIO` for a type without a code. */
export const codeOf = (type: string): ErrorCode => (Object.hasOwn(codes, type) ? (codes[type] ?? "EIO") : "EIO")
