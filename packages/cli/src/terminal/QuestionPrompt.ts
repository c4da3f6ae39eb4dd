/**
 * Asks the person at the terminal the questions of models: of the sessions in this process, child sessions included, or
 * of one session of a server. Withdraws a question that is answered elsewhere. Spec: CL-80..CL-83 in specs/cli.md.
 */
import { Effect, Queue, type Scope, Stream } from "effect"
import type { PendingQuestion, QuestionItem } from "@daybook/core/domain/Question"
import { Sessions } from "@daybook/core/session/Sessions"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import type { EventOfType, SessionEvent } from "@daybook/log/events/SessionEvents"
import { EventLog } from "@daybook/log/log/EventLog"
import { questionChange } from "@daybook/transcript/QuestionEvents"
import { dateTime, oneLine } from "../render/Plain.ts"
import * as Question from "./Question.ts"

export const questionText = ({ header, multiple, options = [], question }: QuestionItem): string => {
  const title = header === undefined ? "" : `${oneLine(header)}: `
  const choices = options.map(({ description, label }, at) => {
    const meaning = description === undefined ? "" : `  ${oneLine(description, 400)}`
    return `  [${at + 1}] ${oneLine(label, 200)}${meaning}\n`
  })
  const several = options.length > 0 && multiple === true ? "  (several: their numbers with commas)\n" : ""
  return `${title}${oneLine(question, 2_000)}\n${choices.join("")}${several}`
}

/** The typed answer: numbers become the labels of their options; any other text is the answer itself. */
export const answerOf = ({ multiple, options = [] }: QuestionItem, typed: string): string => {
  const words = typed.trim()
  if (!/^\d+(?:\s*,\s*\d+)*$/.test(words)) return words
  const numbers = words.split(",").map(Number)
  if (numbers.length > 1 && multiple !== true) return words
  const labels = numbers.map((number) => options[number - 1]?.label)
  return labels.every((label) => label !== undefined) ? labels.join("\n") : words
}

export const pendingText = ({ askedAt, callID, questions }: PendingQuestion): string =>
  `${dateTime(askedAt)}  ${oneLine(callID)}\n${questions.map(questionText).join("")}`

/** Whether models may ask: a person is at the terminal, or answers elsewhere with `daybook answer`. */
export const somebodyAnswers = (): boolean => Question.canAsk() || process.env["DAYBOOK_QUESTIONS"] === "1"

type Called = EventOfType<"session.next.tool.called">

const isQuestion = (event: SessionEvent): event is Called =>
  event.type === "session.next.tool.called" && event.data.tool === "question"

/** Whether the event closes the question of the call. */
const closes = ({ data: call }: Called, event: SessionEvent): boolean => {
  const change = questionChange(event)
  if (change === undefined || change.type === "asked") return false
  return change.callID === call.callID && change.messageID === call.assistantMessageID
}

/** Asks every question of a call; `undefined` when the input ends. */
const askAll = Effect.fnUntraced(function* ({ questions }: PendingQuestion) {
  const answers: Array<string> = []
  for (const item of questions) {
    const typed = yield* Question.line({ shown: `\n${questionText(item)}`, prompt: "answer: " })
    if (typed === undefined) return undefined
    answers.push(answerOf(item, typed))
  }
  return answers
}, Question.together)

/** Asks about the calls, one at a time. */
const askEach = Effect.fnUntraced(function* (waiting: Queue.Dequeue<Called>) {
  const log = yield* EventLog
  const sessions = yield* Sessions

  const answer = Effect.fnUntraced(function* (called: Called) {
    const { data, seq, sessionID } = called
    const pending = (yield* sessions.questions(sessionID)).find(
      ({ callID, messageID }) => callID === data.callID && messageID === data.assistantMessageID
    )
    if (pending === undefined) return
    const ended = log.tail({ sessionID, after: seq }).pipe(
      Stream.takeUntil((event) => closes(called, event)),
      Stream.runDrain,
      Effect.as("closed" as const)
    )
    const answers = yield* Effect.raceFirst(askAll(pending), ended)
    if (answers === "closed") return
    yield* answers === undefined ? sessions.dismissQuestion(pending) : sessions.answer({ ...pending, answers })
  }, Effect.ignoreLogged)

  yield* Effect.forever(Effect.flatMap(Queue.take(waiting), answer))
})

/** Asks as long as the scope is open, if there is a terminal. */
const asking = <E>(calls: (waiting: Queue.Queue<Called>) => Effect.Effect<void, E, EventLog | Scope.Scope>) =>
  Effect.gen(function* () {
    if (!Question.canAsk()) return
    const waiting = yield* Queue.unbounded<Called>()
    yield* calls(waiting)
    yield* Effect.forkScoped(askEach(waiting))
  })

/** Asks about every session that runs in this process. */
export const atTerminal = asking((waiting) =>
  Effect.flatMap(EventLog, (log) =>
    log.listen((events) => Effect.asVoid(Queue.offerAll(waiting, events.filter(isQuestion))))
  )
)

export const ofSession = (sessionID: SessionID) =>
  asking((waiting) =>
    Effect.gen(function* () {
      const log = yield* EventLog
      const calls = Stream.filter(log.tail({ sessionID, after: yield* log.latest(sessionID) }), isQuestion)
      // The run's own stream reports a lost connection.
      yield* Effect.forkScoped(Effect.ignore(Stream.runForEach(calls, (called) => Queue.offer(waiting, called))))
    })
  )
