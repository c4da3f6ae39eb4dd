/**
 * Bounds the strings of an entry before it is written to a file, and removes what is only of use while an answer
 * arrives. Pure; says what it cut. Spec: FM-78..FM-80 (PE-7, PE-10).
 */
import { Predicate } from "effect"
import { beginningOf } from "@daybook/log/support/Text"

/** UTF-16 code units that a string keeps, with the notice. */
export const maxPersistChars = 500_000

/** The end of a string that was cut. */
export const truncationNotice = "[Session persistence truncated large content]"

/** A string that was cut: where, and its former length. */
export interface Cut {
  readonly path: ReadonlyArray<string | number>
  readonly length: number
}

const transient: ReadonlySet<string> = new Set(["partialJson", "jsonlEvents"])
/** A provider accepts a signature whole or not at all. */
const signatures: ReadonlySet<string> = new Set(["thinkingSignature", "thoughtSignature", "textSignature"])
/** Encrypted content is of no use when it is cut. */
const encrypted: ReadonlySet<string> = new Set(["encrypted_content", "encryptedContent"])
/** Blocks whose `data` is of no use when it is cut. */
const opaqueBlocks: ReadonlySet<unknown> = new Set(["image", "redacted_thinking"])

const ending = `\n\n${truncationNotice}`

/** The text with the notice, at most `maxPersistChars` long; the same text if it is short enough. */
export const truncateText = (text: string): string => {
  if (text.length <= maxPersistChars) return text
  return beginningOf(text, maxPersistChars - ending.length) + ending
}

const bounded = (text: string, key: string | undefined, parent: Readonly<Record<string, unknown>> | undefined) => {
  if (text.length <= maxPersistChars || (key !== undefined && encrypted.has(key))) return text
  if (key !== undefined && signatures.has(key)) return ""
  return key === "data" && opaqueBlocks.has(parent?.["type"]) ? text : truncateText(text)
}

/** The value as a file keeps it, and what was cut. A value that needs no change is returned as it is. */
export const truncate = <A>(value: A): { readonly value: A; readonly cuts: ReadonlyArray<Cut> } => {
  const cuts: Array<Cut> = []
  const visit = (
    value: unknown,
    path: ReadonlyArray<string | number>,
    key?: string,
    parent?: Readonly<Record<string, unknown>>
  ): unknown => {
    if (typeof value === "string") {
      const text = bounded(value, key, parent)
      if (text !== value) cuts.push({ path, length: value.length })
      return text
    }
    if (Array.isArray(value)) {
      const items = value.map((item: unknown, at) => visit(item, [...path, at]))
      return items.some((item, at) => item !== value[at]) ? items : value
    }
    return Predicate.isRecord(value) ? fields(value, path) : value
  }
  const fields = (record: Readonly<Record<string, unknown>>, path: ReadonlyArray<string | number>) => {
    const kept = Object.entries(record).filter(([name]) => !transient.has(name))
    const bound = kept.map(([name, field]) => [name, visit(field, [...path, name], name, record)] as const)
    if (kept.length === Object.keys(record).length && bound.every(([name, field]) => field === record[name])) {
      return record
    }
    const result: Record<string, unknown> = Object.fromEntries(bound)
    const { content } = result
    if ("lineCount" in result && typeof content === "string" && content !== record["content"]) {
      result["lineCount"] = content.split("\n").length
    }
    return result
  }
  // Texts stay texts, and only optional fields are removed: the type stays.
  return { value: visit(value, []) as A, cuts }
}
