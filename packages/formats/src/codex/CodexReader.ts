/**
 * Reads rollouts of Codex: `sessions/<year>/<month>/<day>/rollout-<time>-<id>.jsonl`, compressed as
 * `.jsonl.zst`, and earlier `sessions/rollout-<day>-<id>.json`. They are only read. Memory is bounded by the largest accepted record, the prompts'
 * places, and the pieces that wait for an answer to end.
 * Spec: FM-130, FM-150..FM-165 in specs/formats.md.
 */
import { type DialectReader, read as readBytes, readFile } from "../reading/DialectReader.ts"
import * as CodexDocument from "./CodexDocument.ts"
import * as CodexFold from "./CodexFold.ts"
import { headOf } from "./CodexHead.ts"

/** The types of bare items beside damage; other objects may be parts of a damaged record. */
const bare = /^(?:message|reasoning|function_call|function_call_output|local_shell_call)$/

/** The dialect `codex`. */
export const dialect: DialectReader = {
  isRecord: (value) =>
    (typeof value["type"] === "string" && typeof value["timestamp"] === "string" && "payload" in value) ||
    (typeof value["type"] === "string" && bare.test(value["type"])),
  makeRecords: CodexDocument.makeEither,
  open: (early, name, last) => {
    const head = headOf(early, name, last)
    return head === undefined ? undefined : { head, makeFold: (ends) => CodexFold.make(head, ends) }
  }
}

/** Reads the bytes of a rollout; `name` is the name of its file without the ending. */
export const read = (options?: Parameters<typeof readBytes>[1]) => readBytes(dialect, options)

/** Reads a rollout; the file is never changed. */
export const file = readFile(dialect)
