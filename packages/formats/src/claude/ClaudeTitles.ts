/** Follows the titles of a Claude Code log, which repeats the current one often. Spec: FM-142. */
import type { ClaudeRecord } from "./ClaudeRecord.ts"

export interface ClaudeTitles {
  /** The title that a record changes; undefined if it changes none. `has`: the log has a record with this uuid. */
  readonly next: (record: ClaudeRecord, has: (uuid: string) => boolean) => string | undefined
}

export const make = (): ClaudeTitles => {
  let current: string | undefined
  let byPerson = false
  return {
    next: ({ aiTitle, customTitle, leafUuid, summary, type }, has) => {
      // Summaries of other sessions occur: the leaf says whose it is.
      const given =
        type === "custom-title"
          ? customTitle
          : type === "ai-title"
            ? aiTitle
            : type === "summary" && leafUuid !== undefined && has(leafUuid)
              ? summary
              : undefined
      if (given === undefined || given === current || (byPerson && type !== "custom-title")) return undefined
      byPerson ||= type === "custom-title"
      current = given
      return given
    }
  }
}
