/**
 * Renders a tool call: the tool and its subject, its outcome, and the lines that an edit changed. Models write the inputs, so
 * every field may be missing or of another type. Pure. Spec: CL-7, CL-47 in specs/cli.md.
 */
import { Predicate } from "effect"
import type { JsonRecord } from "@daybook/log/domain/Values"
import { oneLine, visible } from "./Plain.ts"

export interface Call {
  readonly tool: string
  readonly input: JsonRecord
}

const field = (input: JsonRecord, name: string): string | undefined => {
  const value = input[name]
  return typeof value === "string" && value !== "" ? value : undefined
}

const patchOf = (input: JsonRecord): string => field(input, "patch") ?? field(input, "input") ?? ""

const patchHeader = /^\*\*\* (?:Add|Update|Delete) File: (.+)$/gm

const questions = ({ questions }: JsonRecord): string =>
  Array.isArray(questions)
    ? questions.map((item) => (Predicate.hasProperty(item, "question") ? item.question : "")).join(" ")
    : ""

const within = (input: JsonRecord): string => {
  const path = field(input, "path")
  return path === undefined ? "" : ` in ${path}`
}

/** The subject of the call; undefined if the input does not fit the tool. */
const subject = ({ input, tool }: Call): string | undefined => {
  switch (tool) {
    case "bash":
      return field(input, "command")
    case "read":
    case "write":
    case "edit":
      return field(input, "path")
    case "glob":
    case "grep": {
      const pattern = field(input, "pattern")
      return pattern === undefined ? undefined : `${pattern}${within(input)}`
    }
    case "apply_patch": {
      const names = Array.from(patchOf(input).matchAll(patchHeader), ([, name = ""]) => name)
      return names.length === 0 ? undefined : names.join(", ")
    }
    case "question":
      return questions(input)
    case "skill":
      return field(input, "name")
    case "task": {
      const what = field(input, "description")
      const agent = field(input, "agent")
      return what === undefined ? undefined : `${agent === undefined ? "" : `${agent}: `}${what}`
    }
    case "todo":
      return Array.isArray(input["items"]) ? `${input["items"].length} items` : ""
    default:
      return undefined
  }
}

export const callText = (call: Call, cells = 110): string => {
  const what = subject(call) ?? (Object.keys(call.input).length === 0 ? "" : JSON.stringify(call.input))
  return oneLine(`${call.tool} ${what}`, cells)
}

/** `12 s`, `1 min 05 s`, `2 h 07 min`. */
export const elapsed = (milliseconds: number): string => {
  const seconds = Math.max(0, Math.floor(milliseconds / 1_000))
  const two = (value: number) => String(value).padStart(2, "0")
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.floor(seconds / 60)
  return minutes < 60
    ? `${minutes} min ${two(seconds % 60)} s`
    : `${Math.floor(minutes / 60)} h ${two(minutes % 60)} min`
}

/** Why a finished command counts as failed. */
export const commandFailure = ({ tool }: Call, structured: JsonRecord): string | undefined => {
  if (tool !== "bash") return undefined
  const { exitCode, signal, stopped } = structured
  if (typeof stopped === "string") return stopped === "timeout" ? "timed out" : "stopped: too much output"
  if (typeof signal === "string") return `ended by ${signal}`
  return typeof exitCode === "number" && exitCode !== 0 ? `exit code ${exitCode}` : undefined
}

type ChangedLine = { readonly sign: "+" | "-" | " "; readonly text: string }

/** Shown lines per change; the log has all of them. */
const shownLines = 16

const linesOf = (text: string): ReadonlyArray<string> => text.replace(/\n$/, "").split("\n")

const signed = (sign: "+" | "-", lines: ReadonlyArray<string>) => lines.map((text): ChangedLine => ({ sign, text }))

/** The lines between the common beginning and the common end of two texts. */
const replaced = (before: string, after: string): ReadonlyArray<ChangedLine> => {
  const [old, young] = [linesOf(before), linesOf(after)]
  let start = 0
  while (start < old.length && start < young.length && old[start] === young[start]) start++
  let end = 0
  while (end < Math.min(old.length, young.length) - start && old.at(-1 - end) === young.at(-1 - end)) end++
  return [
    ...signed("-", before === "" ? [] : old.slice(start, old.length - end)),
    ...signed("+", after === "" ? [] : young.slice(start, young.length - end))
  ]
}

const patched = (patch: string): ReadonlyArray<ChangedLine> =>
  linesOf(patch).flatMap((line): ReadonlyArray<ChangedLine> => {
    const sign = line[0]
    if (sign === "+" || sign === "-") return [{ sign, text: line.slice(1) }]
    return line.startsWith("*** ") && !/^\*\*\* (?:Begin|End)/.test(line) ? [{ sign: " ", text: line.slice(4) }] : []
  })

/** The changed lines, as far as the call's input shows them. */
const changed = ({ input, tool }: Call): ReadonlyArray<ChangedLine> => {
  switch (tool) {
    case "edit":
      return replaced(field(input, "oldText") ?? "", field(input, "newText") ?? "")
    case "write":
      return signed("+", linesOf(field(input, "content") ?? ""))
    case "apply_patch":
      return patched(patchOf(input))
    default:
      return []
  }
}

/** The changed lines, sanitized and bounded; the last line counts the omitted ones. */
export const changes = (call: Call): ReadonlyArray<ChangedLine> => {
  const lines = changed(call)
  const shown = lines.slice(0, shownLines).map(({ sign, text }) => ({ sign, text: visible(text.slice(0, 400)) }))
  const rest = lines.length - shown.length
  return rest === 0 ? shown : [...shown, { sign: " ", text: `… ${rest} more lines` }]
}

/** The last lines of a running command's output. A carriage return restarts its line, as on a terminal. */
export const tail = (output: string, count: number): ReadonlyArray<string> =>
  output
    .trimEnd()
    .split("\n")
    .slice(-count)
    .map((line) => oneLine(line.trimEnd().split("\r").at(-1) ?? "", 400))
