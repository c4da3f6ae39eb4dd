/**
 * Reads the first records of an entry log: the header, and the title slot that omp writes before it. Only its type and id
 * make a record a header; other fields are used if they have the right type. Spec: FM-10, FM-11 in specs/formats.md.
 */
import { Predicate, Schema } from "effect"
import { JsonRecord } from "@daybook/log/domain/Json"

/** The version that this runtime reads and writes. */
export const currentVersion = 3

/** The header of an entry log. */
export const Header = Schema.Struct(
  { type: Schema.Literal("session"), id: Schema.NonEmptyString },
  { key: Schema.String, value: Schema.Unknown }
)
export type Header = typeof Header.Type

/** By hand: lists look at thousands of headers, and a schema would walk all their fields. */
export const isHeader = (record: unknown): record is Header =>
  Predicate.isReadonlyRecord(record) &&
  record["type"] === "session" &&
  Predicate.isString(record["id"]) &&
  record["id"] !== ""

/** The line of fixed size that omp writes before the header, so that it can replace the title in place. */
export const isTitleSlot = (record: JsonRecord): boolean => record["type"] === "title" && "v" in record

/** Without a version it is 1. A version that is not a number is undefined. */
export const versionOf = ({ version }: JsonRecord): number | undefined => {
  if (version === undefined || version === null) return 1
  return Predicate.isNumber(version) ? Math.max(1, Math.floor(version)) : undefined
}

/** Milliseconds of an ISO time or a number; undefined if it is neither. */
export const timeOf = (value: unknown): number | undefined => {
  const time = typeof value === "string" ? Date.parse(value) : value
  return Predicate.isNumber(time) && Number.isFinite(time) ? Math.trunc(time) : undefined
}

const text = (value: unknown): string | undefined => {
  const trimmed = Predicate.isString(value) ? value.trim() : ""
  return trimmed === "" ? undefined : trimmed
}

/** What a header and a title slot say. omp updates only the slot, so its title wins. */
export const readHeader = (header: Header, slot: JsonRecord | undefined) => {
  const [cwd, parent] = [text(header["cwd"]), text(header["parentSession"])]
  const title = text(slot?.["title"]) ?? text(header["title"])
  const source = text(slot?.["title"]) === undefined ? header["titleSource"] : slot?.["source"]
  return {
    id: header.id,
    ...(cwd === undefined ? {} : { cwd }),
    ...(title === undefined ? {} : { title }),
    ...(title !== undefined && source === "user" ? { titledByUser: true as const } : {}),
    ...(parent === undefined ? {} : { parent })
  }
}
