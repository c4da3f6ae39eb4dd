/**
 * The questions and lists that are shown instead of the editor. A question is a tool's permission or a model's question; this
 * module knows which one is drawn, from when on keys answer it, and what each key does. Spec: SC-520..SC-524 in specs/screen.md.
 */
import { matchesKey } from "@mariozechner/pi-tui/dist/keys.js"
import { Effect } from "effect"
import * as Ask from "./Ask.ts"
import type { Asks, Pending } from "./Asks.ts"
import type * as Commands from "./Commands.ts"
import type { Size } from "./Draw.ts"
import * as Input from "./Input.ts"
import type * as Talk from "./Talk.ts"
import type { Theme } from "./Theme.ts"

export interface Options {
  readonly asks: Asks
  /** The open questions of models, the first one first. */
  readonly questions: () => Iterable<Ask.Questions>
  /** Answers have an editor of their own: a half-written prompt stays. */
  readonly input: Input.Input
  readonly size: () => Size
  readonly theme: () => Theme
  /** Another question is drawn. */
  readonly appears: () => void
  readonly answer: (questions: Ask.Questions, text: ReturnType<typeof Ask.answered>) => void
  readonly dismiss: (questions: Ask.Questions) => void
}

export type Dialogs = ReturnType<typeof make>

/** A question that does not fit is written above, whole, and only how to answer it stays below. */
const fitsBelow = (question: ReadonlyArray<string>, { rows }: Size) => question.length + 3 < rows

export const make = ({ answer, appears, asks, dismiss, input, questions, size, theme }: Options) => {
  let mode: Ask.Mode = { type: "keys" }
  let drawn: Pending | Ask.Questions | undefined
  let guard: Ask.DrawnQuestion = { at: 0, lastKey: 0 }
  /** The question that is written above because it does not fit below. */
  let above: { readonly subject: unknown; readonly mode: Ask.Mode } | undefined

  const current = (): Ask.Dialog | undefined => {
    const [pending] = asks.pending()
    if (pending !== undefined) return { type: "permission", pending }
    const [first] = questions()
    return first === undefined ? undefined : { type: "question", questions: first }
  }

  /** Returns the question to draw. If it is another one, only later keys can be its answer. */
  const draws = (): Ask.Dialog | undefined => {
    const dialog = current()
    const subject = Ask.subjectOf(dialog)
    if (subject === drawn) return dialog
    drawn = subject
    if (subject !== undefined) appears()
    mode = { type: "keys" }
    guard = { ...guard, at: Date.now() }
    input.editor.setText("")
    return dialog
  }

  const isReady = () => Ask.listens(guard, Date.now())

  const takesText = (dialog: Ask.Dialog) => dialog.type === "question" || Ask.takesText(mode)

  const linesOf = (dialog: Ask.Dialog, at: Size, ready: boolean) =>
    dialog.type === "permission"
      ? Ask.permissionLines(dialog.pending.request, mode, at, theme(), ready)
      : Ask.questionLines(dialog.questions, at, theme(), ready)

  const reply = (pending: Pending, given: Ask.Reply | undefined) => {
    if (given?.type === "mode") mode = given.mode
    if (given?.type === "answer") pending.answer(given.answer)
  }

  input.editor.onSubmit = (text) => {
    const dialog = current()
    if (dialog?.type === "permission") reply(dialog.pending, Ask.onText(mode, text))
    if (dialog?.type === "question") answer(dialog.questions, Ask.answered(dialog.questions, text))
  }

  return {
    current,
    draws,
    /** The question's lines below the session. */
    lines: (dialog: Ask.Dialog, at: Size): ReadonlyArray<string> => {
      const question = linesOf(dialog, at, isReady())
      return fitsBelow(question, at) ? question : question.slice(-1)
    },
    /** The editor of the answer; undefined while keys go to the prompt. */
    entry: (dialog: Ask.Dialog, columns: number): ReturnType<Input.Input["draw"]> | undefined => {
      if (!isReady()) return undefined
      return takesText(dialog) ? input.draw(columns) : { lines: [], cursor: { row: 0, column: 0 } }
    },
    /** The lines of a question that does not fit below, once. */
    tooLong: (at: Size): ReadonlyArray<string> => {
      const dialog = draws()
      if (dialog === undefined) return []
      const question = linesOf(dialog, at, false)
      const isAbove = above?.subject === drawn && above?.mode === mode
      if (fitsBelow(question, at) || isAbove) return []
      above = { subject: drawn, mode }
      return question.slice(0, -1)
    },
    /** The question that a key can answer now: it is drawn, and the keyboard was silent. */
    answerable: (): Ask.Dialog | undefined => {
      const dialog = current()
      return dialog !== undefined && Ask.subjectOf(dialog) === drawn && isReady() ? dialog : undefined
    },
    /** Notices a key that was typed for something else. */
    elsewhere: () => {
      guard = { ...guard, lastKey: Date.now() }
    },
    /** Whether the question takes a pasted text. */
    onPaste: (dialog: Ask.Dialog, text: string): boolean => {
      if (!takesText(dialog)) return false
      input.editor.handleInput(Input.pasted(text))
      return true
    },
    onKey: (dialog: Ask.Dialog, key: string, burst: boolean): void => {
      const ends = matchesKey(key, "escape") || matchesKey(key, "ctrl+c")
      if (takesText(dialog) && !ends) return input.editor.handleInput(key)
      if (dialog.type === "question") return dismiss(dialog.questions)
      if (takesText(dialog)) {
        mode = { type: "keys" }
        return
      }
      // Keys that come together were not typed to answer.
      if (burst && !ends) return
      const { pending } = dialog
      const pages = Ask.pagesOf(pending.request, size(), theme()).length
      reply(pending, Ask.onKey(pending.request, mode, ends ? "\u001b" : key, pages))
    }
  }
}

/** An open list, with a preview of the selected choice (SC-524). */
interface OpenList {
  list: Ask.List
  preview: ReadonlyArray<string>
  previewOf: string | undefined
  readonly load: Commands.ChoiceRequest["preview"]
  readonly done: (choice: Ask.Choice | undefined) => void
}

export type Choosing = ReturnType<typeof makeChoosing>

export const makeChoosing = (talk: Talk.Talk) => {
  let open: OpenList | undefined

  const loadPreview = (choosing: OpenList) => {
    const choice = Ask.chosen(choosing.list)
    if (choosing.load === undefined || choice === undefined || choice.value === choosing.previewOf) return
    choosing.previewOf = choice.value
    choosing.preview = []
    const loaded = Effect.map(choosing.load(choice), (lines) => {
      if (choosing.previewOf === choice.value) choosing.preview = lines
    })
    talk.act(loaded)
  }

  return {
    isOpen: () => open !== undefined,
    /** Opens a list. Returns the choice; undefined if the person left the list. */
    choose: ({ at = 0, choices, preview, title }: Commands.ChoiceRequest) =>
      Effect.async<Ask.Choice | undefined>((resume) => {
        open = {
          list: { title, choices, filter: "", at },
          preview: [],
          previewOf: undefined,
          load: preview,
          done: (choice) => {
            open = undefined
            resume(Effect.succeed(choice))
          }
        }
        loadPreview(open)
        talk.options.changed()
      }),
    /** The list's lines; undefined if none is open. */
    lines: (at: Size, theme: Theme): ReadonlyArray<string> | undefined =>
      open === undefined ? undefined : Ask.listLines(open.list, open.preview, at, theme),
    onKey: (key: string): void => {
      if (open === undefined) return
      if (matchesKey(key, "enter")) return open.done(Ask.chosen(open.list))
      if (matchesKey(key, "escape") || matchesKey(key, "ctrl+c")) return open.done(undefined)
      open.list = Ask.onListKey(open.list, key)
      loadPreview(open)
    }
  }
}
