/** `daybook answer`: lists a model's open questions, or answers them. Spec: CL-82, CL-83. */
import { Effect } from "effect"
import type { PendingQuestion } from "@daybook/core/domain/Question"
import { Sessions } from "@daybook/core/session/Sessions"
import * as Flags from "../arguments/Flags.ts"
import * as SessionReference from "../arguments/SessionReference.ts"
import { type FieldValues, verb } from "../arguments/Verb.ts"
import { withSessions, sessionWord } from "../host/Runtime.ts"
import { answerOf, pendingText } from "../terminal/QuestionPrompt.ts"
import { NotFound, UsageError } from "../support/Errors.ts"
import { Output, writeJson } from "../terminal/Output.ts"

const given = {
  session: sessionWord,
  words: Flags.many("TEXT"),
  dismiss: Flags.toggle("dismiss", "refuse to answer: the run that asked stops"),
  json: Flags.json
}

/** One word per question; for a single question, all words are its answer. */
const answersOf = ({ questions }: PendingQuestion, words: ReadonlyArray<string>) =>
  questions.length === 1 ? [words.join(" ")] : words

const run = Effect.fn("Command.answer")(function* ({ dismiss, json, session, words }: FieldValues<typeof given>) {
  const output = yield* Output
  const sessions = yield* Sessions
  if (dismiss && words.length > 0) return yield* new UsageError({ message: "--dismiss takes no answer" })
  const { id } = yield* SessionReference.resolveHere(session)
  const waiting = yield* sessions.questions(id)
  if (!dismiss && words.length === 0) {
    for (const call of waiting) {
      yield* json ? writeJson(call) : output.write(pendingText(call))
    }
    if (waiting.length === 0) yield* output.note(`${id} asks nothing\n`)
    return
  }
  const oldest = waiting[0]
  if (oldest === undefined) return yield* new NotFound({ message: `${id} asks nothing` })
  if (dismiss) return yield* sessions.dismissQuestion(oldest)
  const { questions } = oldest
  const answers = answersOf(oldest, words)
  if (answers.length !== questions.length) {
    return yield* new UsageError({
      message: `${questions.length} questions wait, but there are ${answers.length} answers: quote each answer`
    })
  }
  yield* sessions.answer({ ...oldest, answers: questions.map((item, at) => answerOf(item, answers[at] ?? "")) })
  if (waiting.length > 1) yield* output.note(`${waiting.length - 1} more wait: daybook answer ${id}\n`)
})

export const answer = verb({
  name: "answer",
  summary: "list the questions of a session's model, or answer them",
  words: "SESSION [TEXT...]",
  details: [
    "Without TEXT it lists the waiting questions. With TEXT it answers the oldest call: the words are the answer. If the call " +
      "asks more than one question, give one word for each, in order; quote answers with spaces. A number selects an " +
      "option, numbers with commas select several. A model asks only while its session runs and someone can answer: on a " +
      "terminal, over HTTP, in Discord, or with DAYBOOK_QUESTIONS=1."
  ],
  given,
  examples: [
    ["daybook answer fix", "lists the questions of the session called fix"],
    ["daybook answer fix 2", "chooses the second option"],
    ['daybook answer fix "Use SQLite." 1,3', "answers two questions: one in words, one with two options"]
  ],
  overServer: true,
  run: (values) => withSessions(run(values))
})
