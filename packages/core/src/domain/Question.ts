/** Defines the questions that a model asks a person, and open questions. Spec: TO-81..TO-86. */
import { Schema } from "effect"
import { QuestionRef } from "@daybook/log/domain/Identifiers"
import { optional } from "@daybook/log/support/Optional"

export { QuestionClosed, QuestionRef } from "@daybook/log/domain/Identifiers"

const text = (most: number) => Schema.NonEmptyString.pipe(Schema.maxLength(most))
export const QuestionOption = Schema.Struct({
  label: text(200).annotations({ description: "The answer, in a few words" }),
  description: optional(text(1_000).annotations({ description: "What choosing it means" }))
})
export type QuestionOption = typeof QuestionOption.Type

/** One question. A person may always answer freely; options are suggestions. */
export const QuestionItem = Schema.Struct({
  question: text(2_000).annotations({ description: "The whole question" }),
  header: optional(text(100).annotations({ description: "A title of a few words" })),
  options: optional(
    Schema.Array(QuestionOption).pipe(Schema.maxItems(20), Schema.annotations({ description: "Suggested answers" }))
  ),
  multiple: optional(Schema.Boolean.annotations({ description: "Whether several options may be chosen" }))
})
export type QuestionItem = typeof QuestionItem.Type

export const QuestionItems = Schema.Array(QuestionItem).pipe(Schema.minItems(1), Schema.maxItems(4))

/** Maximum characters of an answer. */
export const longestAnswer = 10_000

/** The answers of a call: one text per question, in order. Several chosen options are one line each. */
export const Answers = Schema.Array(Schema.String.pipe(Schema.maxLength(longestAnswer))).pipe(Schema.maxItems(4))

/** A call that waits for a person. */
export const PendingQuestion = Schema.Struct({
  ...QuestionRef.fields,
  /** Milliseconds since the epoch. */
  askedAt: Schema.Int,
  questions: Schema.Array(QuestionItem)
})
export type PendingQuestion = typeof PendingQuestion.Type
