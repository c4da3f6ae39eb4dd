/**
 * Folds the events of a session into what its thread shows. An event outside of a run publishes nothing: it repeats the
 * history of a fork. Pure. Spec: DI-14..DI-19, DI-26, DI-43 in specs/discord.md.
 */
import { Schema } from "effect"
import { type QuestionItem, QuestionItems } from "@daybook/core/domain/Question"
import { isAnswerProblem } from "@daybook/log/domain/AnswerProblem"
import type { EventIn, SessionEvent } from "@daybook/log/events/SessionEvents"
import { messageOf, Snowflake } from "../domain/Names.ts"
import { type Body, type Button, type Change, emoji, type Menu, type PostKey } from "./Post.ts"
import { clip, line, publishable, split } from "./Text.ts"

// Shows a tool call as one line.

/** What says most about a call, in this order. */
const telling = ["command", "path", "filePath", "pattern", "query", "url", "description", "prompt", "name"]

const summary = (input: Readonly<Record<string, unknown>>): string => {
  const key = telling.find((name) => typeof input[name] === "string")
  return key === undefined ? (Object.keys(input).length === 0 ? "" : JSON.stringify(input)) : String(input[key])
}

/** The call without its state: the tool, and what it acts on. */
const callText = (tool: string, input: Readonly<Record<string, unknown>>, known: ReadonlyArray<string>): string => {
  const about = line(publishable(summary(input), known), 160)
  return `\`${line(tool, 40)}\`${about === "" ? "" : ` \`${about}\``}`
}

// Shows the questions of a model, and their answers.

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
const questionBody = (questions: ReadonlyArray<QuestionItem>, known: ReadonlyArray<string>): Body => {
  const content = questions.map(({ question }) => `❓ ${shownText(question, known)}`).join("\n")
  const buttons: ReadonlyArray<Button> = [
    { action: "answer", label: questions.length === 1 ? "Answer" : "Answer all", style: "primary" },
    { action: "dismiss", label: "Decline", style: "danger" }
  ]
  const [only] = questions.length === 1 ? questions : []
  return { content, buttons, menus: only === undefined ? [] : menuOf(only, 0, known) }
}

const answered = (answers: ReadonlyArray<string> | undefined, known: ReadonlyArray<string>): Body => ({
  content:
    answers === undefined
      ? "❓ Declined"
      : answers.map((answer) => `❓ → ${shownText(answer, known)}`).join("\n") || "❓ Answered"
})

/** An open text or call: the event that began its post. */
const Open = Schema.Struct({ event: Schema.String, line: Schema.String })

/** What the fold remembers of a session between events: only of its running activity. */
export const State = Schema.Struct({
  /** The thread of the session that started this one as a task. */
  thread: Schema.optionalWith(Snowflake, { exact: true }),
  /** Where the running activity began; absent while nothing runs. */
  since: Schema.optionalWith(Schema.Int, { exact: true }),
  /** By message and text. */
  texts: Schema.Record({ key: Schema.String, value: Open }),
  /** By message and call. */
  calls: Schema.Record({ key: Schema.String, value: Open }),
  /** The messages of persons that the run answers. */
  prompts: Schema.Array(Schema.String)
})
export type State = typeof State.Type

export const initial: State = { texts: {}, calls: {}, prompts: [] }

/** A text in more messages than this is sent as a file. */
const mostChunks = 8

const decodeQuestions = Schema.decodeUnknownOption(Schema.Struct({ questions: QuestionItems }))

const callKey = (data: { readonly assistantMessageID: string; readonly callID: string }): string =>
  `${data.assistantMessageID} ${data.callID}`

const textKey = (data: { readonly assistantMessageID: string; readonly textID: string }): string =>
  `${data.assistantMessageID} ${data.textID}`

const without = <A>(record: Readonly<Record<string, A>>, key: string): Readonly<Record<string, A>> =>
  Object.fromEntries(Object.entries(record).filter(([name]) => name !== key))

const textBodies = (text: string): ReadonlyArray<Body> => {
  const chunks = split(text)
  if (chunks.length <= mostChunks) return chunks.map((content) => ({ content }))
  return [
    { content: split(text, 1_800)[0] ?? "" },
    { content: "The whole answer is in the file.", file: { name: "answer.md", text } }
  ]
}

/** What a text shows before its first line is complete. */
export const waiting: Body = { content: "…" }

const react = (prompts: ReadonlyArray<string>, symbol: string | null): ReadonlyArray<Change> =>
  prompts.map((message) => ({ type: "react", message, emoji: symbol }))

export interface Folded {
  readonly state: State
  readonly changes: ReadonlyArray<Change>
}

const outcomes = { completed: emoji.done, failed: emoji.failed, interrupted: emoji.stopped } as const

/** The state after the event, and what it changes in the thread. */
export const fold = (state: State, event: SessionEvent, known: ReadonlyArray<string>): Folded => {
  const { sessionID } = event
  const key = (begun: string, chunk = 0): PostKey => ({ sessionID, event: begun, chunk })
  const post = (begun: string, body: Body, chunk = 0): Change => ({ type: "post", key: key(begun, chunk), body })
  const same: Folded = { state, changes: [] }
  switch (event.type) {
    case "session.next.prompt.admitted": {
      const message = messageOf(event.data.messageID)
      return message === undefined ? same : { state, changes: react([message], emoji.admitted) }
    }
    case "session.next.prompt.withdrawn": {
      const message = messageOf(event.data.messageID)
      return message === undefined ? same : { state, changes: react([message], null) }
    }
    case "session.next.prompt.promoted": {
      const message = messageOf(event.data.messageID)
      if (message === undefined) return same
      return { state: { ...state, prompts: [...state.prompts, message] }, changes: react([message], emoji.running) }
    }
    case "session.next.activity.started":
      return { state: { ...state, since: event.seq }, changes: [] }
    case "session.next.activity.settled": {
      const { error, outcome } = event.data
      const cut = Object.values(state.texts).map(({ event }) => post(event, { content: "*(cut off)*" }))
      const ended = Object.values(state.calls).map(({ event, line }) => post(event, { content: `⏹ ${line}` }))
      const why = error === undefined ? "" : `: ${line(publishable(error.message, known), 1_500)}`
      const problem = isAnswerProblem(error) ? `${emoji.incomplete} ${error.message}` : undefined
      const said = { completed: problem, failed: `❌ Failed${why}`, interrupted: `🛑 Stopped${why}` }[outcome]
      const notice = said === undefined ? [] : [post(event.id, { content: said })]
      const symbol = problem === undefined ? outcomes[outcome] : emoji.incomplete
      return { state: initial, changes: [...cut, ...ended, ...notice, ...react(state.prompts, symbol)] }
    }
    case "session.next.text.started": {
      if (state.since === undefined) return same
      const texts = { ...state.texts, [textKey(event.data)]: { event: event.id, line: "" } }
      return { state: { ...state, texts }, changes: [{ type: "post", key: key(event.id), body: waiting, grows: true }] }
    }
    case "session.next.text.ended": {
      const open = state.texts[textKey(event.data)]
      if (open === undefined) return same
      const bodies = textBodies(publishable(event.data.text, known))
      const shown = bodies.length === 0 ? [{ content: "*(empty)*" }] : bodies
      return {
        state: { ...state, texts: without(state.texts, textKey(event.data)) },
        changes: shown.map((body, chunk) => post(open.event, body, chunk))
      }
    }
    case "session.next.tool.called": {
      if (state.since === undefined) return same
      const { callID, input, tool } = event.data
      const ref = { sessionID, messageID: event.data.assistantMessageID, callID }
      const asked = tool === "question" ? decodeQuestions(input) : undefined
      if (asked?._tag === "Some") {
        const { questions } = asked.value
        const begun = { event: event.id, line: "question" }
        return {
          state: { ...state, calls: { ...state.calls, [callKey(event.data)]: begun } },
          changes: [
            {
              type: "post",
              key: key(event.id),
              body: questionBody(questions, known),
              target: { type: "question", ...ref, questions }
            }
          ]
        }
      }
      const text = callText(tool, input, known)
      return {
        state: { ...state, calls: { ...state.calls, [callKey(event.data)]: { event: event.id, line: text } } },
        changes: [
          { type: "post", key: key(event.id), body: { content: `🔧 ${text}` }, target: { type: "call", ...ref } }
        ]
      }
    }
    case "session.next.question.answered":
    case "session.next.question.dismissed": {
      const open = state.calls[callKey(event.data)]
      if (open === undefined) return same
      const answers = event.type === "session.next.question.answered" ? event.data.answers : undefined
      return {
        state: { ...state, calls: without(state.calls, callKey(event.data)) },
        changes: [post(open.event, answered(answers, known))]
      }
    }
    case "session.next.tool.success":
    case "session.next.tool.failed": {
      const open = state.calls[callKey(event.data)]
      if (open === undefined) return same
      const symbol = event.type === "session.next.tool.success" ? "✅" : "❌"
      const content = `${symbol} ${open.line}`
      return {
        state: { ...state, calls: without(state.calls, callKey(event.data)) },
        changes: [post(open.event, { content, buttons: [{ action: "output", label: "Output", style: "secondary" }] })]
      }
    }
    case "session.next.compaction.ended":
      return state.since !== undefined
        ? { state, changes: [post(event.id, { content: "-# Earlier messages were summarized." })] }
        : same
    default:
      event satisfies EventIn<
        "about" | "prompts" | "steps" | "requests" | "texts" | "calls" | "compactions" | "tree" | "decisions" | "shells"
      >
      return same
  }
}

/** Besides calls of `question`: what opens and closes the questions of a task. */
const ofTask: ReadonlySet<SessionEvent["type"]> = new Set([
  "session.next.activity.started",
  "session.next.activity.settled",
  "session.next.question.answered",
  "session.next.question.dismissed",
  "session.next.tool.success",
  "session.next.tool.failed"
])

/** The fold of a task's session: the thread shows only the questions of the task. */
export const foldTask = (state: State, event: SessionEvent, known: ReadonlyArray<string>): Folded => {
  const isShown = event.type === "session.next.tool.called" ? event.data.tool === "question" : ofTask.has(event.type)
  if (!isShown) return { state, changes: [] }
  const folded = fold(state, event, known)
  if (event.type !== "session.next.activity.settled") return folded
  // The end of the task is for the session that gave it.
  return { ...folded, changes: folded.changes.filter((each) => each.type === "post" && each.key.event !== event.id) }
}
