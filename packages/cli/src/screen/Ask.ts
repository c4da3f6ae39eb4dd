/**
 * The questions in place of the editor: a tool's permission, a model's question, and a list to choose from. A key counts only
 * after the question was shown and the keyboard was silent for a moment. Pure. Spec: SC-520..SC-524 in specs/screen.md.
 */
import { matchesKey } from "@mariozechner/pi-tui/dist/keys.js"
import type { PendingQuestion } from "@daybook/core/domain/Question"
import { Answer, type PermissionRequest } from "@daybook/core/permission/PermissionAsker"
import { oneLine, visible } from "../render/Plain.ts"
import { alwaysText, questionText, questionPages } from "../terminal/PermissionPrompt.ts"
import { answerOf, questionText as modelQuestionText } from "../terminal/QuestionPrompt.ts"
import { fit } from "../render/LiveLines.ts"
import type { Pending } from "./Asks.ts"
import type { Size } from "./Draw.ts"
import type { Theme } from "./Theme.ts"

/** How long the keyboard must be silent before a key is an answer, in milliseconds. */
export const moment = 300

/** When a question was drawn, and the last key that was typed for something else. */
export interface DrawnQuestion {
  readonly at: number
  readonly lastKey: number
}

/** Whether a key that comes now is an answer. */
export const listens = ({ at, lastKey }: DrawnQuestion, now: number): boolean => now - Math.max(at, lastKey) >= moment

/** What a permission question waits for. */
export type Mode =
  | { readonly type: "keys" }
  | { readonly type: "view"; readonly page: number }
  /** The editor holds the words for the model, or the pattern to save. */
  | { readonly type: "words" }
  | { readonly type: "always" }

/** What a key or a text does to a permission question. */
export type Reply =
  { readonly type: "answer"; readonly answer: Answer } | { readonly type: "mode"; readonly mode: Mode }

const answer = (answer: Answer): Reply => ({ type: "answer", answer })
const mode = (mode: Mode): Reply => ({ type: "mode", mode })
const keys = mode({ type: "keys" })

/** A key, while no text is asked for; undefined for a key that means nothing. */
export const onKey = (request: PermissionRequest, now: Mode, key: string, pages: number): Reply | undefined => {
  if (now.type === "view") {
    const next = now.page + 1
    const goesOn = matchesKey(key, "enter") || matchesKey(key, "space") || matchesKey(key, "down")
    return goesOn && next < pages ? mode({ type: "view", page: next }) : keys
  }
  const lasting = request.always.length > 0
  if (matchesKey(key, "escape")) return answer(Answer.Decline())
  switch (key.toLowerCase()) {
    case "y":
      return answer(Answer.Once())
    case "s":
      return lasting ? answer(Answer.Session()) : undefined
    case "a":
      return lasting ? mode({ type: "always" }) : undefined
    case "v":
      return mode({ type: "view", page: 0 })
    case "n":
      return answer(Answer.Decline())
    case "c":
      return mode({ type: "words" })
    default:
      return undefined
  }
}

/** The editor's text was sent. An empty one goes back, or saves the pattern as shown. */
export const onText = (now: Mode, text: string): Reply => {
  const words = text.trim()
  if (now.type === "always") {
    return answer(words === "" ? Answer.Always() : Answer.AlwaysFor({ resources: [words] }))
  }
  return words === "" ? keys : answer(Answer.Correct({ message: words }))
}

/** Whether the editor is used. */
export const takesText = ({ type }: Mode): boolean => type === "words" || type === "always"

const rows = (text: string): ReadonlyArray<string> => text.replace(/^\n|\n$/g, "").split("\n")

/** The keys in words, or in fewer where these do not fit: each key must be seen. */
const keysHint = (lasting: boolean, columns: number): string => {
  const [long, short] = lasting ? [", [s]ession, [a]lways", " [s]ession [a]lways"] : ["", ""]
  const all = [
    `[y]es once${long}, [v]iew, [c]orrect with words, [n]o and stop`,
    `[y]es once${long}, [v]iew, [c]orrect, [n]o`,
    `[y]es${short} [v] [c] [n]o`
  ]
  return all.find((text) => text.length < columns) ?? "y, s, a, v, c, n"
}

const hint = (request: PermissionRequest, now: Mode, pages: number, columns: number): string => {
  switch (now.type) {
    case "keys":
      return keysHint(request.always.length > 0, columns)
    case "view":
      return `${now.page + 1} of ${pages}: ${now.page + 1 < pages ? "Enter shows more, q goes back" : "Enter goes back"}`
    case "words":
      return "what the model should do instead; Enter sends it, Esc goes back"
    case "always":
      return "Enter saves this, Esc goes back; or type another pattern (* is any text)"
  }
}

export const pagesOf = (request: PermissionRequest, size: Size, { style }: Theme): ReadonlyArray<string> =>
  questionPages(request, size, style)

/** The question in lines. `ready`: a key is an answer now. */
export const permissionLines = (
  request: PermissionRequest,
  now: Mode,
  size: Size,
  theme: Theme,
  ready: boolean
): ReadonlyArray<string> => {
  const pages = now.type === "view" ? pagesOf(request, size, theme) : []
  const shown =
    now.type === "view"
      ? rows(pages[now.page] ?? "")
      : rows(questionText(request, size, theme.style) + (now.type === "always" ? alwaysText(request, size) : ""))
  const words = hint(request, now, pages.length, size.columns)
  return [...shown, ready ? theme.accent(fit(words, size.columns)) : theme.style.dim(fit(words, size.columns))]
}

export interface Questions {
  readonly pending: PendingQuestion
  readonly answers: ReadonlyArray<string>
}

/** The typed answer; the answers of all questions once each has one. */
export const answered = ({ answers, pending }: Questions, typed: string): Questions | ReadonlyArray<string> => {
  const item = pending.questions[answers.length]
  const all = item === undefined ? answers : [...answers, answerOf(item, typed)]
  return all.length < pending.questions.length ? { pending, answers: all } : all
}

export const questionLines = (
  { answers, pending }: Questions,
  { columns }: Size,
  theme: Theme,
  ready: boolean
): ReadonlyArray<string> => {
  const item = pending.questions[answers.length]
  if (item === undefined) return []
  const words = fit("answer below, Enter sends it, Esc declines and stops", columns)
  return [
    ...rows(modelQuestionText(item)).map((row, at) =>
      at === 0 ? theme.style.strong(fit(row, columns)) : fit(row, columns)
    ),
    ready ? theme.accent(words) : theme.style.dim(words)
  ]
}

export interface Choice {
  readonly value: string
  /** Drawn before the label, with its spaces. */
  readonly lead?: string
  readonly label: string
  readonly about?: string
}

export interface List {
  readonly title: string
  readonly choices: ReadonlyArray<Choice>
  readonly filter: string
  readonly at: number
}

/** Those that have every word of the filter, in their order. */
export const matching = ({ choices, filter }: List): ReadonlyArray<Choice> => {
  const words = filter
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "")
  if (words.length === 0) return choices
  return choices.filter(({ about = "", label, value }) => {
    const text = `${label} ${about} ${value}`.toLowerCase()
    return words.every((word) => text.includes(word))
  })
}

export const chosen = (list: List): Choice | undefined => matching(list)[list.at]

/** A key moves the bar or changes the filter. Enter and Esc are the caller's. */
export const onListKey = (list: List, key: string): List => {
  const { length } = matching(list)
  const move = (by: number) => ({ ...list, at: length === 0 ? 0 : (list.at + by + length) % length })
  if (matchesKey(key, "up")) return move(-1)
  if (matchesKey(key, "down") || matchesKey(key, "tab")) return move(1)
  if (matchesKey(key, "pageUp")) return { ...list, at: Math.max(0, list.at - 10) }
  if (matchesKey(key, "pageDown")) return { ...list, at: Math.max(0, Math.min(length - 1, list.at + 10)) }
  if (matchesKey(key, "backspace")) return { ...list, filter: Array.from(list.filter).slice(0, -1).join(""), at: 0 }
  if (matchesKey(key, "ctrl+u")) return { ...list, filter: "", at: 0 }
  return key !== "" && visible(key) === key ? { ...list, filter: list.filter + key, at: 0 } : list
}

/** The list, with the rows around the bar, and a preview of the choice. */
export const listLines = (
  list: List,
  preview: ReadonlyArray<string>,
  size: Size,
  theme: Theme
): ReadonlyArray<string> => {
  const { columns } = size
  const found = matching(list)
  const most = Math.max(3, Math.min(12, Math.floor(size.rows / 2) - 2))
  const from = Math.max(0, Math.min(list.at - Math.floor(most / 2), found.length - most))
  const shownPreview = preview.slice(0, Math.max(0, size.rows - most - 8))
  return [
    fit(`${list.title}: ${list.filter}▏`, columns),
    ...(found.length === 0 ? [theme.style.dim("  nothing fits")] : []),
    ...found.slice(from, from + most).map(({ about, label, lead = "" }, row) => {
      const isChosen = from + row === list.at
      const line = fit(
        `${isChosen ? "›" : " "} ${lead}${oneLine(label, columns)}${about === undefined ? "" : `  ${oneLine(about, columns)}`}`,
        columns
      )
      return isChosen ? theme.accent(line) : line
    }),
    ...(found.length > most ? [theme.style.dim(fit(`  ${list.at + 1} of ${found.length}`, columns))] : []),
    ...shownPreview.map((line) => theme.style.dim(fit(`  │ ${line}`, columns))),
    theme.style.dim(fit("Enter chooses, Esc goes back; type to search", columns))
  ]
}

/** What takes the keys in place of the editor. */
export type Dialog =
  | { readonly type: "permission"; readonly pending: Pending }
  | { readonly type: "question"; readonly questions: Questions }

export const subjectOf = (dialog: Dialog | undefined) =>
  dialog?.type === "permission" ? dialog.pending : dialog?.type === "question" ? dialog.questions : undefined
