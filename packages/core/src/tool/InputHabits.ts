/**
 * Lists how models write inputs that a tool's schema does not describe, and what they mean, for all built-in tools.
 * `LenientInput.ts` applies the list. The advertised schemas stay strict. Spec: TO-17, TO-18.
 */
import { Predicate } from "effect"

/** The known deviations for one tool. */
export interface Habits {
  /** Aliases of its fields, folded. A name that the schema declares is never an alias. */
  readonly fields?: Readonly<Record<string, string>>
  /** Aliases of enumeration values, folded. */
  readonly words?: Readonly<Record<string, string>>
  /** Amounts: outside the range, the nearest bound is used. */
  readonly bounded?: ReadonlyArray<string>
  /** Fields in seconds that models also give in milliseconds: values from ten thousand up are milliseconds. */
  readonly milliseconds?: ReadonlyArray<string>
  /** Text fields, with a function that converts a list or an object to the text. */
  readonly texts?: Readonly<Record<string, (value: unknown) => unknown>>
}

/** A name without case and separators: `old_text` equals `oldText`. */
export const folded = (name: string): string => name.toLowerCase().replaceAll(/[\s_-]/g, "")

/** The text of a list with exactly one text. */
const onlyText = (value: unknown): unknown => {
  const [only, ...more] = Array.isArray(value) ? value : []
  return more.length === 0 && Predicate.isString(only) ? only : value
}

const plainWord = /^[\w@%+=:,./-]+$/
const inShell = (word: string): string => (plainWord.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`)

/** A list of arguments written as text; no command begins like this. */
const argumentsIn = (value: unknown): unknown => {
  if (!Predicate.isString(value) || !/^\s*\["/.test(value)) return value
  try {
    const list: unknown = JSON.parse(value)
    return list
  } catch {
    return value
  }
}

/** A command given as a list of arguments: the script if it starts a shell, otherwise the quoted arguments. */
const commandLine = (given: unknown): unknown => {
  const value = argumentsIn(given)
  if (!Array.isArray(value) || value.length < 2 || !value.every(Predicate.isString)) return onlyText(value)
  const [program = "", option = "", script, ...more] = value
  const isShell = /^(?:\/\S*\/)?(?:ba|z)?sh$/.test(program) && /^-l?c$/.test(option)
  return isShell && script !== undefined && more.length === 0 ? script : value.map(inShell).join(" ")
}

/** The patch inside a command that applies it. */
const patchText = (value: unknown): unknown =>
  Array.isArray(value) && value.length === 2 && value[0] === "apply_patch" ? onlyText([value[1]]) : onlyText(value)

/** Serializes content given as a JSON value. A list of texts is refused: it could also be the lines of a file. */
const jsonText = (value: unknown): unknown =>
  Predicate.isReadonlyRecord(value) || (Array.isArray(value) && value.some((item) => !Predicate.isString(item)))
    ? `${JSON.stringify(value, null, 2)}\n`
    : value

const path = {
  absolutepath: "path",
  file: "path",
  filename: "path",
  filepath: "path",
  filepaths: "path",
  paths: "path",
  targetfile: "path",
  uri: "path"
}
const folder = { dir: "path", directory: "path", folder: "path", targetdirectory: "path" }
const oldText = { find: "oldText", old: "oldText", oldstr: "oldText", oldstring: "oldText", search: "oldText" }
const newText = { new: "newText", newstr: "newText", newstring: "newText", replace: "newText", replacement: "newText" }
/** Removes line breaks around a path, which come from the format in which a model writes calls. */
const pathText = (value: unknown): unknown => {
  const only = onlyText(value)
  return Predicate.isString(only) ? only.replace(/^[\r\n]+|[\r\n]+$/g, "") : value
}
const onePath = { path: pathText }

const habits: Readonly<Record<string, Habits>> = {
  read: {
    fields: { ...path, ...folder, line: "offset", startline: "offset" },
    bounded: ["offset", "limit"],
    texts: onePath
  },
  glob: {
    fields: { ...folder, glob: "pattern", globpattern: "pattern", patterns: "pattern", query: "pattern" },
    texts: { ...onePath, pattern: onlyText }
  },
  grep: {
    fields: {
      ...path,
      ...folder,
      caseinsensitive: "ignoreCase",
      filepattern: "include",
      glob: "include",
      i: "ignoreCase",
      includepattern: "include",
      query: "pattern",
      regex: "pattern",
      search: "pattern",
      searchpattern: "pattern"
    },
    texts: { ...onePath, include: onlyText }
  },
  write: {
    fields: {
      ...path,
      body: "content",
      code: "content",
      contents: "content",
      data: "content",
      filecontent: "content",
      filetext: "content",
      newcontent: "content",
      text: "content"
    },
    texts: { ...onePath, content: jsonText }
  },
  edit: { fields: { ...path, ...oldText, ...newText, all: "replaceAll" }, texts: onePath },
  apply_patch: {
    fields: {
      cmd: "patch",
      command: "patch",
      content: "patch",
      diff: "patch",
      input: "patch",
      patchtext: "patch",
      text: "patch"
    },
    texts: { patch: patchText }
  },
  bash: {
    fields: {
      bash: "command",
      cmd: "command",
      code: "command",
      commands: "command",
      cwd: "workdir",
      directory: "workdir",
      script: "command",
      shellcommand: "command",
      workingdirectory: "workdir"
    },
    bounded: ["timeout"],
    milliseconds: ["timeout"],
    texts: { command: commandLine }
  },
  question: { fields: { multiselect: "multiple", text: "label", title: "header", value: "label" } },
  skill: { fields: { skill: "name", skillname: "name" } },
  task: { fields: { agentname: "agent", agenttype: "agent", subagent: "agent", subagenttype: "agent" } },
  todo: {
    fields: {
      content: "text",
      plan: "items",
      state: "status",
      step: "text",
      task: "text",
      tasks: "items",
      title: "text",
      todos: "items"
    },
    words: {
      active: "in_progress",
      canceled: "cancelled",
      complete: "done",
      completed: "done",
      notstarted: "pending",
      open: "pending",
      todo: "pending"
    }
  }
}

/** The known deviations of the tool with this name. */
export const habitsOf = (tool: string): Habits => (Object.hasOwn(habits, tool) ? (habits[tool] ?? {}) : {})
