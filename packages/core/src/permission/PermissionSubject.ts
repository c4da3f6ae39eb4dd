/** A call's action as data for a person's decision: the whole command, changed lines, input. Pure. Spec: PM-20. */
import { Schema } from "effect"
import { JsonValue } from "@daybook/log/domain/Json"
import { optional } from "@daybook/log/support/Optional"

export const FileChange = Schema.Struct({
  path: Schema.String,
  change: Schema.Literal("create", "replace", "edit", "delete", "move"),
  movedTo: optional(Schema.String),
  /** Removed lines begin with `-`, added lines with `+`, others with a space; `@@` begins a position. */
  diff: Schema.String
})
export type FileChange = typeof FileChange.Type

export const PermissionSubject = Schema.Union(
  /** A complete shell command and its working folder. */
  Schema.Struct({
    type: Schema.Literal("command"),
    command: Schema.String,
    folder: Schema.String,
    /** The runtime's warnings about the command. */
    warnings: Schema.Array(Schema.String)
  }),
  /** File changes, applied all or none. */
  Schema.Struct({ type: Schema.Literal("change"), files: Schema.Array(FileChange) }),
  /** A file or folder that is read, or searched for `pattern`. */
  Schema.Struct({ type: Schema.Literal("read"), path: Schema.String, pattern: optional(Schema.String) }),
  /** Work in a folder outside the session's own. */
  Schema.Struct({
    type: Schema.Literal("external_directory"),
    folder: Schema.String,
    command: optional(Schema.String)
  }),
  Schema.Struct({ type: Schema.Literal("mcp"), server: Schema.String, tool: Schema.String, input: JsonValue }),
  Schema.Struct({
    type: Schema.Literal("task"),
    agent: Schema.String,
    description: Schema.String,
    prompt: Schema.String
  }),
  Schema.Struct({ type: Schema.Literal("skill"), name: Schema.String }),
  Schema.Struct({ type: Schema.Literal("call"), input: optional(JsonValue) })
)
export type PermissionSubject = typeof PermissionSubject.Type

const linesOf = (text: string): ReadonlyArray<string> => (text === "" ? [] : text.replace(/\n$/, "").split("\n"))

const withSign = (sign: string, lines: ReadonlyArray<string>) => lines.map((line) => sign + line)

export const signed = (sign: "+" | "-" | " ", text: string): ReadonlyArray<string> => withSign(sign, linesOf(text))

/** Unchanged lines shown on each side of a difference. */
const around = 2

/**
 * The lines that differ between two texts, with two unchanged lines on each side; the common beginning and end are
 * omitted. Notes a final line break that only one of the texts has.
 */
export const diffOf = (before: string, after: string): string => {
  if (before === after) return ""
  const ended = before === "" || after === "" || before.endsWith("\n") === after.endsWith("\n")
  const [old, young] = [linesOf(before), linesOf(after)]
  let start = 0
  while (start < old.length && start < young.length && old[start] === young[start]) start++
  let end = 0
  while (end < Math.min(old.length, young.length) - start && old.at(-1 - end) === young.at(-1 - end)) end++
  const from = Math.max(0, start - around)
  return [
    ...(from === 0 ? [] : [`@@ line ${from + 1}`]),
    ...withSign(" ", old.slice(from, start)),
    ...withSign("-", old.slice(start, old.length - end)),
    ...withSign("+", young.slice(start, young.length - end)),
    ...withSign(" ", old.slice(old.length - end, old.length - end + around)),
    ...(ended ? [] : [`@@ the last line ${after.endsWith("\n") ? "gets" : "loses"} its line break`])
  ].join("\n")
}
