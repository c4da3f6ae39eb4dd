/** Why a request is refused, for its client: an errno name and a sentence (FR-5). Pure. */
import { Schema } from "effect"
import type { ImportUnfinished } from "@daybook/log/domain/Imported"
import type { InboxFullError, PromptConflictError } from "@daybook/log/domain/InboxError"
import type { InvalidInput } from "@daybook/log/domain/InvalidInput"
import type { AddressTaken } from "@daybook/log/domain/Title"
import type { AppendError, ReadError } from "@daybook/log/log/EventLog"
import type { StoreError } from "@daybook/log/store/StoreError"
import { ErrorCode } from "@daybook/transcript/row/Rows"

/** The request was refused. */
export class Refused extends Schema.TaggedError<Refused>()("Refused", { code: ErrorCode, message: Schema.String }) {}

type CoreError =
  | AddressTaken
  | AppendError
  | ImportUnfinished
  | InboxFullError
  | InvalidInput
  | PromptConflictError
  | ReadError
  | StoreError

const codes: { readonly [Tag in CoreError["_tag"]]?: ErrorCode } = {
  InvalidInput: "EINVAL",
  PromptConflictError: "EINVAL",
  AddressTaken: "EBUSY",
  ImportUnfinished: "EBUSY",
  InboxFullError: "EBUSY",
  SeqConflict: "EBUSY",
  OwnerLost: "EBUSY",
  SessionNotFound: "ENOENT"
}

/** Converts a refusal by the runtime. */
export const refusedBy = (error: CoreError | Refused): Refused =>
  error._tag === "Refused" ? error : new Refused({ code: codes[error._tag] ?? "EIO", message: error.message })
