/**
 * How models write inputs that a tool's schema does not describe, and what is meant. The words are listed here, for all
 * built-in tools in one place; `LenientInput.ts` applies them. The schemas that are advertised stay strict.
 * Spec: TO-17, TO-18.
 */
import { Predicate } from "effect"

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
  /** Fields that hold a text, and the text that a list or an object stands for there. */
  readonly texts?: Readonly<Record<string, (value: unknown) => unknown>>
}

/** A name without case and separators: `old_text` and `oldText` are one. */
export const folded = (name: string): string => name.toLowerCase().replaceAll(/[\s_-]/g, "")

/** The only text in a list. */
const onlyText = (value: unknown): unknown => {
  const [only, ...more] = Array.isArray(value) ? value : []
  return more.length === 0 && Predicate.isString(only) ? only : value
}

const plainWord = /^[\w@%+=:,./-]+$/
const inShell = (word: string): string => (plainWord.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`)

/** A list of arguments as text; a command that begins so is nothing else. */
const argumentsIn = (value: unknown): unknown => {
  if (!Predicate.isString(value) || !/^\s*\["/.test(value)) return value
  try {
    const list: unknown = JSON.parse(value)
    return list
  } catch {
    return value
  }
}

/** A command as a list of arguments: what a shell in front of it is given, or the arguments, quoted. */
const commandLine = (given: unknown): unknown => {
  const value = argumentsIn(given)
  if (!Array.isArray(value) || value.length < 2 || !value.every(Predicate.isString)) return onlyText(value)
  const [program = "", option = "", script, ...more] = value
  const isShell = /^(?:\/\S*\/)?(?:ba|z)?sh$/.test(program) && /^-l?c$/.test(option)
  return isShell && script !== undefined && more.length === 0 ? script : value.map(inShell).join(" ")
}

/** The patch of a command that applies it. */
const patchText = (value: unknown): unknown =>
  Array.isArray(value) && value.length === 2 && value[0] === "apply_patch" ? onlyText([value[1]]) : onlyText(value)

/** A JSON file's content as the value itself. A list of texts may be the lines of a file as well: it is refused. */
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
/** Line breaks around a path are those of the form that a model writes its calls in. */
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

/** What is known of the tool of this name. */
export const habitsOf = (tool: string): Habits => (Object.hasOwn(habits, tool) ? (habits[tool] ?? {}) : {})
