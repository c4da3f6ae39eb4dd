/**
 * What a call would do, as data that a person decides by: the whole command, the lines that a change adds and removes, the
 * input of a tool. Pure. Spec: PM-20 in specs/tools.md.
 */
import { Schema } from "effect"

const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

/** What happens to one file. */
export const FileChange = Schema.Struct({
  path: Schema.String,
  change: Schema.Literal("create", "replace", "edit", "delete", "move"),
  movedTo: optional(Schema.String),
  /** The lines that go begin with `-`, those that come with `+`, others with a space; `@@` begins a place of the file. */
  diff: Schema.String
})
export type FileChange = typeof FileChange.Type

/** What a permission is asked for; `type` says which kind of question it is. */
export const PermissionSubject = Schema.Union(
  /** A shell command, whole, and the folder that it would run in. */
  Schema.Struct({
    type: Schema.Literal("command"),
    command: Schema.String,
    folder: Schema.String,
    /** What the runtime noticed about it. */
    warnings: Schema.Array(Schema.String)
  }),
  /** Files that change, all of them or none. */
  Schema.Struct({ type: Schema.Literal("change"), files: Schema.Array(FileChange) }),
  /** A file or folder that is read, or searched for what `pattern` says. */
  Schema.Struct({ type: Schema.Literal("read"), path: Schema.String, pattern: optional(Schema.String) }),
  /** Work in a folder outside the session's own. */
  Schema.Struct({
    type: Schema.Literal("external_directory"),
    folder: Schema.String,
    command: optional(Schema.String)
  }),
  /** A call of a tool of an MCP server. */
  Schema.Struct({ type: Schema.Literal("mcp"), server: Schema.String, tool: Schema.String, input: Schema.Unknown }),
  /** Work that another agent is given. */
  Schema.Struct({
    type: Schema.Literal("task"),
    agent: Schema.String,
    description: Schema.String,
    prompt: Schema.String
  }),
  /** Instructions that are loaded. */
  Schema.Struct({ type: Schema.Literal("skill"), name: Schema.String }),
  /** A call of any other tool. */
  Schema.Struct({ type: Schema.Literal("call"), input: optional(Schema.Unknown) })
)
export type PermissionSubject = typeof PermissionSubject.Type

const linesOf = (text: string): ReadonlyArray<string> => (text === "" ? [] : text.replace(/\n$/, "").split("\n"))

const withSign = (sign: string, lines: ReadonlyArray<string>) => lines.map((line) => sign + line)

/** The lines of a text, each behind the sign. */
export const signed = (sign: "+" | "-" | " ", text: string): ReadonlyArray<string> => withSign(sign, linesOf(text))

/** Lines that stay and are shown on each side of those that differ. */
const around = 2

/**
 * The lines that differ between two texts, with two that stay on each side: what both texts begin and end with is left out.
 * A last line break that only one of them has is told of.
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
