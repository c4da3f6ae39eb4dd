/**
 * Reads logs of Claude Code: `projects/<folder>/<session>.jsonl`, and those of its subagents. They are only read. Memory
 * is bounded by the largest accepted line, an index of the records' ids, and the pieces that wait for an answer to end.
 * Spec: FM-130..FM-149 in specs/formats.md.
 */
import { type DialectReader, read as readBytes, readFile } from "../reading/DialectReader.ts"
import * as ClaudeFold from "./ClaudeFold.ts"
import { headOf, isSubagent } from "./ClaudeHead.ts"
import { decode } from "./ClaudeRecord.ts"

/** The dialect `claude-code`. A record with a uuid opens the log, since only those say where the session worked. */
export const dialect: DialectReader = {
  isRecord: (value) =>
    typeof value["type"] === "string" && (typeof value["uuid"] === "string" || typeof value["sessionId"] === "string"),
  open: (early, name, last) => {
    for (const value of last ? early : early.slice(-1)) {
      const fields = decode(value)
      const head = fields.uuid === undefined && !last ? undefined : headOf(fields, name)
      if (head !== undefined) return { head, makeFold: (ends) => ClaudeFold.make(isSubagent(fields), ends) }
    }
    return undefined
  }
}

/** Reads the bytes of a log; `name` is the name of its file without the ending. */
export const read = (options?: Parameters<typeof readBytes>[1]) => readBytes(dialect, options)

/** Reads a log; the file is never changed. */
export const file = readFile(dialect)
