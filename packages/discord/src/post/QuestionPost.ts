/** Shows the questions of a model, and their answers. Pure. Spec: DI-43 in specs/discord.md. */
import type { QuestionItem } from "@daybook/core/domain/Question"
import { clip, line, publishable } from "../text/Publishable.ts"
import type { Body, Button, Menu } from "./Post.ts"

const shownText = (text: string, known: ReadonlyArray<string>): string => clip(publishable(text, known), 450)

/** A menu for a question with options: its value is the option's number. */
const menuOf = (
  { multiple = false, options = [], header }: QuestionItem,
  at: number,
  known: ReadonlyArray<string>
): ReadonlyArray<Menu> =>
  options.length === 0
    ? []
    : [
        {
          action: `choose:${at}`,
          placeholder: line(publishable(header ?? "Choose an answer", known), 100),
          options: options.map(({ description, label }, number) => ({
            label: line(publishable(label, known), 100) || "-",
            value: String(number),
            ...(description === undefined ? {} : { description: line(publishable(description, known), 100) || "-" })
          })),
          most: multiple ? options.length : 1
        }
      ]

/** Open questions. A single question with options is answered by its menu; others by a form. */
export const questionBody = (questions: ReadonlyArray<QuestionItem>, known: ReadonlyArray<string>): Body => {
  const content = questions.map(({ question }) => `❓ ${shownText(question, known)}`).join("\n")
  const buttons: ReadonlyArray<Button> = [
    { action: "answer", label: questions.length === 1 ? "Answer" : "Answer all", style: "primary" },
    { action: "dismiss", label: "Decline", style: "danger" }
  ]
  const [only] = questions.length === 1 ? questions : []
  return { content, buttons, menus: only === undefined ? [] : menuOf(only, 0, known) }
}

/** Closed questions, with the answers. */
export const answered = (answers: ReadonlyArray<string> | undefined, known: ReadonlyArray<string>): Body => ({
  content:
    answers === undefined
      ? "❓ Declined"
      : answers.map((answer) => `❓ → ${shownText(answer, known)}`).join("\n") || "❓ Answered"
})
