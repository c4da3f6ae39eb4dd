/** Renders the result of a compaction. Pure. Spec: CL-7, CL-88 in specs/cli.md. */
import type { EventOfType } from "@daybook/log/events/SessionEvents"

/** The size of the request before, and of the summary. */
export const compacted = ({ text, tokensBefore }: EventOfType<"session.next.compaction.ended">["data"]): string => {
  const before = tokensBefore === undefined ? "" : `the request had ${Math.round(tokensBefore)} tokens, `
  return `summarised: ${before}the summary has ${text.length} characters`
}
