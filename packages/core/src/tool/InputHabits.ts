/**
 * How models write inputs that a tool's schema does not describe, and what is meant. The words are listed here, for all
 * built-in tools in one place; `LenientInput.ts` applies them. The schemas that are advertised stay strict.
 * Spec: TO-17, TO-18.
 */

/** The habits around one tool. */
export interface Habits {
  /** Other names of its fields, as `folded` gives them. A name that the schema declares is never taken for another. */
  readonly fields?: Readonly<Record<string, string>>
  /** Other words for the values of an enumeration, as `folded` gives them. */
  readonly words?: Readonly<Record<string, string>>
  /** Numbers that only say how much is wanted: beyond the range, the nearest bound is taken. */
  readonly bounded?: ReadonlyArray<string>
  /** Fields in seconds that are also given in milliseconds: ten thousand and more are. */
  readonly milliseconds?: ReadonlyArray<string>
}

/** A name without case and separators: `old_text` and `oldText` are one. */
export const folded = (name: string): string => name.toLowerCase().replaceAll(/[\s_-]/g, "")

const path = { file: "path", filename: "path", filepath: "path", targetfile: "path" }
const folder = { dir: "path", directory: "path", folder: "path" }
const oldText = { find: "oldText", old: "oldText", oldstr: "oldText", oldstring: "oldText", search: "oldText" }
const newText = { new: "newText", newstr: "newText", newstring: "newText", replace: "newText", replacement: "newText" }

const habits: Readonly<Record<string, Habits>> = {
  read: { fields: { ...path, ...folder, line: "offset", startline: "offset" }, bounded: ["offset", "limit"] },
  glob: { fields: { ...folder, glob: "pattern", query: "pattern" } },
  grep: {
    fields: { ...path, ...folder, glob: "include", i: "ignoreCase", query: "pattern", regex: "pattern" }
  },
  write: { fields: { ...path, contents: "content", filetext: "content", text: "content" } },
  edit: { fields: { ...path, ...oldText, ...newText, all: "replaceAll" } },
  apply_patch: { fields: { diff: "patch", input: "patch", patchtext: "patch", text: "patch" } },
  bash: {
    fields: { cmd: "command", cwd: "workdir", directory: "workdir", script: "command", workingdirectory: "workdir" },
    bounded: ["timeout"],
    milliseconds: ["timeout"]
  },
  question: { fields: { multiselect: "multiple", text: "label", title: "header", value: "label" } },
  skill: { fields: { skill: "name", skillname: "name" } },
  task: { fields: { agentname: "agent", agenttype: "agent", subagent: "agent", subagenttype: "agent" } },
  todo: {
    fields: { content: "text", task: "text", title: "text", todos: "items" },
    words: { canceled: "cancelled", complete: "done", completed: "done", open: "pending", todo: "pending" }
  }
}

/** What is known of the tool of this name. */
export const habitsOf = (tool: string): Habits => (Object.hasOwn(habits, tool) ? (habits[tool] ?? {}) : {})
