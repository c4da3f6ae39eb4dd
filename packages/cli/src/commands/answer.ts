/** `daybook answer`: what a model asks and waits for, and the answer to it. Spec: CL-82, CL-83. */
import { Sessions, type PendingQuestion } from "@daybook/core"
import { Args, Command } from "@effect/cli"
import { Effect } from "effect"
import { NotFound, UsageError } from "../Errors.ts"
import * as Flags from "../Flags.ts"
import * as Folder from "../Folder.ts"
import { Output } from "../Output.ts"
import { jsonLine } from "../render/Plain.ts"
import { answerOf, pendingText } from "../render/QuestionText.ts"
import { withSessions } from "../Runtime.ts"
import * as SessionReference from "../SessionReference.ts"
import type { Verb } from "../Verb.ts"

const dismiss = Flags.toggle("dismiss", "refuse to answer: the run that asked stops")

interface Options {
  readonly session: string
  readonly words: ReadonlyArray<string>
  readonly dismiss: boolean
  readonly json: boolean
}

/** A word for each question; for a single question, all words are its answer. */
const answersOf = ({ questions }: PendingQuestion, words: ReadonlyArray<string>) =>
  questions.length === 1 ? [words.join(" ")] : words

const run = Effect.fn("Command.answer")(function* ({ dismiss, json, session, words }: Options) {
  const output = yield* Output
  const sessions = yield* Sessions
  if (dismiss && words.length > 0) return yield* new UsageError({ message: "--dismiss takes no answer" })
  const { id } = yield* SessionReference.resolve(session, yield* Folder.current)
  const waiting = yield* sessions.questions(id)
  if (!dismiss && words.length === 0) {
    for (const call of waiting) {
      yield* output.write(json ? `${jsonLine(call, output.terminal)}\n` : pendingText(call))
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
      message: `${questions.length} questions wait, and ${answers.length} answers were given: quote each answer`
    })
  }
  yield* sessions.answer({ ...oldest, answers: questions.map((item, at) => answerOf(item, answers[at] ?? "")) })
  if (waiting.length > 1) yield* output.note(`${waiting.length - 1} more wait: daybook answer ${id}\n`)
})

export const answer = {
  name: "answer",
  summary: "list what a session's model asks, or answer it",
  words: "SESSION [TEXT...]",
  details: [
    "Without TEXT, the questions that wait. With it, the oldest call is answered: the words are the answer, or, where the " +
      "call asks more than one question, one word for each, in order; quote what has spaces. A number, or for several " +
      "choices numbers with commas, stands for an option. A model asks only while a process runs its session with " +
      "somebody to answer: on a terminal, or with DAYBOOK_QUESTIONS=1."
  ],
  flags: [dismiss, Flags.json],
  examples: [
    ["daybook answer fix", "what the session called fix asks"],
    ["daybook answer fix 2", "the second option"],
    ['daybook answer fix "Use SQLite." 1,3', "two questions: words, and two of the options"]
  ],
  command: Command.make(
    "answer",
    {
      session: Args.text({ name: "SESSION" }),
      words: Args.repeated(Args.text({ name: "TEXT" })),
      dismiss: dismiss.options,
      json: Flags.json.options
    },
    (given) => withSessions(run(given))
  )
} satisfies Verb
