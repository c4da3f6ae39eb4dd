/** What came of a compaction, in a few words. Pure. Spec: CL-7, CL-88 in specs/cli.md. */
import type { EventOfType } from "@daybook/core"

/** How much became how little. */
export const compacted = ({ text, tokensBefore }: EventOfType<"session.next.compaction.ended">["data"]): string =>
  `summarised${tokensBefore === undefined ? "" : ` ${Math.round(tokensBefore)} tokens`} in ${text.length} characters`
