/** The tool `question`: asks a person and waits without a time limit. Spec: TO-81..TO-86. */
import * as Tool from "@effect/ai/Tool"
import { Effect, Schema } from "effect"
import { questionTool } from "@daybook/log/store/QuestionStore"
import { QuestionItems } from "../../domain/Question.ts"
import { ToolDeclined, ToolFailure } from "../../domain/ToolError.ts"
import { define } from "../../tool/ToolDefinition.ts"
import { Questions } from "../Questions.ts"

const QuestionTool = Tool.make(questionTool, {
  description:
    "Asks the person one to four questions and waits for the answers. For decisions that are theirs and cannot be " +
    "found out otherwise. They may answer in their own words whatever the options.",
  parameters: { questions: QuestionItems },
  success: Schema.Struct({
    answers: Schema.Array(Schema.Struct({ question: Schema.String, answer: Schema.String }))
  })
})

/** `question`, for hosts where a person can answer. */
export const makeQuestion = Effect.map(Questions, (waiting) =>
  define(QuestionTool, {
    readOnly: true,
    handler: Effect.fn("Tool.question")(function* ({ questions }, call) {
      const { callID, messageID, sessionID } = call
      const outcome = yield* Effect.mapError(
        waiting.outcome({ sessionID, messageID, callID }),
        ({ message }) => new ToolFailure({ type: "tool.execution", message: `the answer cannot be read: ${message}` })
      )
      if (outcome._tag === "Dismissed") return yield* new ToolDeclined({ tool: questionTool })
      return {
        answers: questions.map(({ question }, index) => ({ question, answer: outcome.answers[index] ?? "" }))
      }
    })
  })
)
