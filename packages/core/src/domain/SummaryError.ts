/** Defines why a branch that was left has no summary. */
import { Schema } from "effect"
import { SessionID } from "@daybook/log/domain/Identifiers"

/** The model gave no summary of the branch. History continues where it did. */
export class BranchNotSummarized extends Schema.TaggedError<BranchNotSummarized>("@daybook/core/BranchNotSummarized")(
  "BranchNotSummarized",
  { sessionID: SessionID, details: Schema.String }
) {
  override get message() {
    return `the branch of ${this.sessionID} was not summarized, and nothing was moved: ${this.details}; try again, or without a summary`
  }
}
