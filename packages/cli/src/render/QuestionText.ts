/** Renders a model's questions and parses typed answers. Pure. Spec: CL-80..CL-83 in specs/cli.md. */
import type { PendingQuestion, QuestionItem } from "@daybook/core/domain/Question"
import { dateTime, oneLine } from "./Plain.ts"

/** One question with its numbered options. */
export const questionText = ({ header, multiple, options = [], question }: QuestionItem): string => {
  const title = header === undefined ? "" : `${oneLine(header)}: `
  const choices = options.map(({ description, label }, at) => {
    const meaning = description === undefined ? "" : `  ${oneLine(description, 400)}`
    return `  [${at + 1}] ${oneLine(label, 200)}${meaning}\n`
  })
  const several = options.length > 0 && multiple === true ? "  (several: their numbers with commas)\n" : ""
  return `${title}${oneLine(question, 2_000)}\n${choices.join("")}${several}`
}

/**
 * The answer that was typed: numbers become the labels of their options (a line each if several may be chosen); any other
 * text is the answer itself.
 */
export const answerOf = ({ multiple, options = [] }: QuestionItem, typed: string): string => {
  const words = typed.trim()
  if (!/^\d+(?:\s*,\s*\d+)*$/.test(words)) return words
  const numbers = words.split(",").map(Number)
  if (numbers.length > 1 && multiple !== true) return words
  const labels = numbers.map((number) => options[number - 1]?.label)
  return labels.every((label) => label !== undefined) ? labels.join("\n") : words
}

/** A waiting call: its time and questions. */
export const pendingText = ({ askedAt, callID, questions }: PendingQuestion): string =>
  `${dateTime(askedAt)}  ${oneLine(callID)}\n${questions.map(questionText).join("")}`
