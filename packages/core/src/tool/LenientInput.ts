/**
 * Decodes a tool's input as the model meant it. Refusing a misnamed field, or a number written as text, costs a whole
 * turn, so the input is converted to the schema's form before it is decoded; handlers and permissions see only the
 * result. These are all conversions (TO-17):
 *
 * - fields that the schema does not declare are dropped
 * - field names and enumeration values match without case, `_` and `-`, and by the aliases of the tool's habits
 * - in an optional field, `null`, `""`, `"null"`, `"None"` and `"undefined"` mean an absent field, unless its schema
 *   accepts the value
 * - a text with JSON is parsed where an object or a list is expected
 * - a text with a decimal number is a number, `"true"` and `"false"` are booleans
 * - a bare text that does not begin like JSON becomes the object's only required field, if that is a text
 * - `{ "input": ... }` is unwrapped, also beside the tool's name; so are the other names in `wrappers`
 * - an amount outside its range becomes the nearest bound, and a fraction is rounded up
 * - a list or an object in a text field is converted by the field's function among its habits
 *
 * The decoder refuses what still does not fit, and describes the converted input. Pure. Spec: TO-17, TO-18, LM-31,
 * LM-32.
 */
import * as Tool from "@effect/ai/Tool"
import { type Effect, type ParseResult, Predicate, Schema } from "effect"
import { excessOf, tooDeep, tooMany } from "../support/Excess.ts"

// Limits the depth and the number of values of a call's arguments, before any recursive reader sees them.

const isExcessive = (value: unknown): boolean => excessOf(value) !== undefined

const leftOut = (excess: string) => `[left out: ${excess}]`

/** The arguments for the log: a short text replaces arguments that exceed a limit. */
export const boundedInput = (value: unknown): unknown => {
  const excess = excessOf(value)
  return excess === undefined ? value : leftOut(excess)
}

/** What the model reads about arguments that were left out; undefined for any others. */
export const refusalOf = (input: unknown): string | undefined => {
  if (input === leftOut(tooDeep)) return `the arguments are ${tooDeep}; make them flatter`
  return input === leftOut(tooMany) ? `the arguments hold ${tooMany}; send fewer at a time` : undefined
}

// Lists inputs that models write against a tool's schema, and their meaning; advertised schemas stay strict.

/** The known deviations for one tool. */
interface Habits {
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
const folded = (name: string): string => name.toLowerCase().replaceAll(/[\s_-]/g, "")

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
const habitsOf = (tool: string): Habits => (Object.hasOwn(habits, tool) ? (habits[tool] ?? {}) : {})

/** An advertised JSON schema. */
type Form = Readonly<Record<string, unknown>>

const record = (value: unknown): Form => (Predicate.isReadonlyRecord(value) ? value : {})
const list = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])

const propertiesOf = (form: Form) => record(form["properties"])
const requiredOf = (form: Form) => list(form["required"]).filter(Predicate.isString)
const membersOf = (form: Form) => (Array.isArray(form["anyOf"]) ? form["anyOf"].map(record) : undefined)

/** Whether the value has the form, judged by its outermost layer. */
const accepts = (form: Form, value: unknown): boolean => {
  const members = membersOf(form)
  if (members !== undefined) return members.some((member) => accepts(member, value))
  if (Array.isArray(form["enum"])) return form["enum"].includes(value)
  switch (form["type"]) {
    case "object":
      return Predicate.isReadonlyRecord(value) && requiredOf(form).every((name) => Object.hasOwn(value, name))
    case "array":
      return Array.isArray(value)
    case "string":
      return Predicate.isString(value) && (value !== "" || form["minLength"] === undefined)
    case "integer":
      return Number.isSafeInteger(value)
    case "number":
      return Predicate.isNumber(value)
    case "boolean":
      return Predicate.isBoolean(value)
    case "null":
      return value === null
    default:
      return true
  }
}

const parsed = (value: unknown): unknown => {
  if (!Predicate.isString(value) || !/^\s*[[{]/.test(value)) return undefined
  try {
    const json: unknown = JSON.parse(value)
    return isExcessive(json) ? undefined : json
  } catch {
    return undefined
  }
}

const numberOf = (value: unknown): unknown =>
  Predicate.isString(value) && /^\s*-?\d{1,15}(\.\d{1,15})?\s*$/.test(value) ? Number(value) : value

const booleanOf = (value: unknown): unknown => {
  const word = Predicate.isString(value) ? value.trim().toLowerCase() : undefined
  return word === "true" ? true : word === "false" ? false : value
}

const wordOf = (words: ReadonlyArray<unknown>, value: unknown, habits: Habits): unknown => {
  if (!Predicate.isString(value) || words.includes(value)) return value
  const given = folded(value)
  return words.find((word) => Predicate.isString(word) && folded(word) === given) ?? habits.words?.[given] ?? value
}

const nearest = (form: Form, value: number): number => {
  const bound = (name: string, step = 0) => (Predicate.isNumber(form[name]) ? form[name] + step : undefined)
  const least = bound("minimum") ?? bound("exclusiveMinimum", 1) ?? -Infinity
  const most = bound("maximum") ?? bound("exclusiveMaximum", -1) ?? Infinity
  return Math.min(Math.max(value, least), most)
}

const amount = (form: Form, name: string, value: unknown, { bounded = [], milliseconds = [] }: Habits): unknown => {
  if (!Predicate.isNumber(value) || !bounded.includes(name)) return value
  return nearest(form, Math.ceil(milliseconds.includes(name) && value >= 10_000 ? value / 1_000 : value))
}

/** Maps each field to the schema's name for it; declared names take precedence. */
const named = (form: Form, value: Form, habits: Habits): ReadonlyMap<string, unknown> => {
  // If any name is allowed, names are not converted.
  if (form["additionalProperties"] !== false) return new Map(Object.entries(value))
  const properties = propertiesOf(form)
  const names = new Map(Object.keys(properties).map((name) => [folded(name), name]))
  const fields = new Map(Object.entries(value).filter(([name]) => Object.hasOwn(properties, name)))
  for (const [given, field] of Object.entries(value)) {
    const name = names.get(folded(given)) ?? habits.fields?.[folded(given)]
    if (name === undefined || !Object.hasOwn(properties, name)) continue
    if (fields.get(name) === undefined || fields.get(name) === null) fields.set(name, field)
  }
  return fields
}

/** Values that other languages use for an absent value. */
const nothing: ReadonlySet<unknown> = new Set([null, "", "null", "None", "undefined"])

const fieldsOf = (form: Form, value: Form, habits: Habits): Form => {
  const properties = propertiesOf(form)
  const required = requiredOf(form)
  const fields: Array<readonly [string, unknown]> = []
  for (const [name, given] of named(form, value, habits)) {
    const own = record(properties[name])
    const blank = nothing.has(given) && !accepts(own, given)
    if (blank && !required.includes(name)) continue
    const read = habits.texts?.[name]
    fields.push([name, amount(own, name, fit(own, read === undefined ? given : read(given), habits), habits)])
  }
  return Object.fromEntries(fields)
}

const objectOf = (form: Form, value: unknown, habits: Habits): unknown => {
  // The object allows any fields, so there is nothing to convert.
  if (form["properties"] === undefined) return Predicate.isReadonlyRecord(value) ? value : (parsed(value) ?? value)
  const given = Predicate.isReadonlyRecord(value) ? value : parsed(value)
  if (Predicate.isReadonlyRecord(given)) return fieldsOf(form, given, habits)
  const [only, ...more] = requiredOf(form)
  const isText = only !== undefined && more.length === 0 && record(propertiesOf(form)[only])["type"] === "string"
  // A text that begins like JSON but does not parse may be truncated.
  return isText && Predicate.isString(value) && !/^\s*[[{"]/.test(value) ? { [only]: value } : value
}

/** Converts the value to the form, as far as the habits allow. */
const fit = (form: Form, value: unknown, habits: Habits): unknown => {
  const members = membersOf(form)
  if (members !== undefined) {
    const tried = members.map((member) => ({ member, value: fit(member, value, habits) }))
    const plain = members.findIndex((member) => accepts(member, value))
    return (tried[plain] ?? tried.find((each) => accepts(each.member, each.value)))?.value ?? value
  }
  if (Array.isArray(form["enum"])) return wordOf(form["enum"], value, habits)
  switch (form["type"]) {
    case "object":
      return objectOf(form, value, habits)
    case "array": {
      const items = Array.isArray(value) ? value : parsed(value)
      return Array.isArray(items) ? items.map((item) => fit(record(form["items"]), item, habits)) : value
    }
    case "integer":
    case "number":
      return numberOf(value)
    case "boolean":
      return booleanOf(value)
    default:
      return value
  }
}

const wrappers: ReadonlyArray<string> = ["input", "arguments", "args", "parameters", "params"]

/** Names of fields that describe a call, besides its input. */
const callFields: ReadonlySet<string> = new Set(["id", "name", "tool", "toolname", "type"])

/** Unwraps a single undeclared field that means "the input", alone or beside fields that describe the call. */
const unwrapped = (form: Form, value: unknown): unknown => {
  const names = Predicate.isReadonlyRecord(value) ? Object.keys(value) : []
  const own = (name: string) => Object.hasOwn(propertiesOf(form), name)
  const [only = "", ...more] = names.filter((name) => own(name) || !callFields.has(folded(name)))
  return more.length === 0 && wrappers.includes(only) && !own(only) ? record(value)[only] : value
}

/** Parses an input that may be the JSON of an object, for a tool whose schema belongs to others. */
export const objectIn = (input: unknown): unknown => {
  const given = parsed(input)
  return Predicate.isReadonlyRecord(given) ? given : input
}

/** Decodes a model's input for the tool with this name, with the conversions above. Absent input is an empty object. */
export const decodeInput = <A, I, R>(
  tool: string,
  schema: Schema.Schema<A, I, R>
): ((input: unknown) => Effect.Effect<A, ParseResult.ParseError, R>) => {
  const form = record(Tool.getJsonSchemaFromSchemaAst(schema.ast))
  const habits = habitsOf(tool)
  const decode = Schema.decodeUnknown(schema, { errors: "all" })
  return (input) => decode(fit(form, unwrapped(form, input ?? {}), habits))
}
