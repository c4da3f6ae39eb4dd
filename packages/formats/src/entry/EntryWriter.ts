/**
 * Writes the lines of an entry log. The normal form of a record is its compact JSON in the order of its fields; the file is
 * the records before the header, the header, and the entries in file order. Spec: FM-50..FM-53 in specs/formats.md.
 */
import { Stream } from "effect"
import type { JsonRecord } from "@daybook/log/domain/Json"
import type { Head } from "../conversation/Conversation.ts"

/** A record as a line, with its newline. */
export const lineOf = (record: JsonRecord): string => `${JSON.stringify(record)}\n`

/** The lines before the first entry. */
export const headLines = ({ before = [], record }: Pick<Head, "before" | "record">): ReadonlyArray<string> =>
  [...before, record].map(lineOf)

/** The lines of a log. `records` are the entries in version 3, in the order in which they were appended. */
export const lines =
  (head: Pick<Head, "before" | "record">) =>
  <E, R>(records: Stream.Stream<JsonRecord, E, R>): Stream.Stream<string, E, R> =>
    Stream.concat(Stream.fromIterable(headLines(head)), Stream.map(records, lineOf))
