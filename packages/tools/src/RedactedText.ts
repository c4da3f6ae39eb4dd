/**
 * Refuses to write back what was shown redacted: a file's secret would be lost to the mark. A mark that the file already
 * has may stay. Spec: TO-56.
 */
import { Effect } from "effect"
import { ToolFailure } from "@daybook/core/domain/ToolError"
import { mark } from "@daybook/log/support/Redaction"

const marksIn = (text: string): number => text.split(mark).length - 1

/** Whether the text contains the mark at all. */
export const isMarked = (text: string): boolean => text.includes(mark)

/** Fails if the new text of a file has more marks than the old one. `name` is the file as the model knows it. */
export const refuseRedacted = (name: string, before: string, after: string): Effect.Effect<void, ToolFailure> =>
  marksIn(after) <= marksIn(before)
    ? Effect.void
    : new ToolFailure({
        type: "edit.refused",
        message:
          `${JSON.stringify(name)} would contain ${mark} where it has none: the mark replaces a secret in what was ` +
          `shown. Leave the text around the secret unchanged. Nothing was changed.`
      })
