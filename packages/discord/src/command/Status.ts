/** The texts of `/status`, `/summary` and `/budget`. Pure. Spec: DI-41, DI-66 in specs/discord.md. */
import { problemOfActivity, problemWords } from "@daybook/log/domain/AnswerProblem"
import type { Message, Session } from "@daybook/log/domain/Message"
import type { Budget, TodoItem } from "@daybook/log/domain/Values"
import { clip, line, publishable } from "../text/Publishable.ts"

const dollars = (cost: number): string => `$${cost.toFixed(cost < 1 ? 4 : 2)}`

export const budgetText = ({ cost, tokens }: Budget): string => {
  const parts = [
    ...(cost === undefined ? [] : [dollars(cost)]),
    ...(tokens === undefined ? [] : [`${tokens.toLocaleString("en-US")} tokens`])
  ]
  return parts.length === 0 ? "no limit" : parts.join(", ")
}

export const modelText = ({ model }: Session): string =>
  model === undefined ? "the server's default model" : `${model.providerID}/${model.id}`

export interface Facts {
  readonly session: Session
  readonly spent: { readonly cost: number }
  readonly waiting: number
  readonly questions: number
  readonly permissions: number
  /** Why nothing can be posted in the thread. */
  readonly problem: string | null
  /** Posts that are not sent yet. */
  readonly unsent: number
}

export const statusText = ({ permissions, problem, questions, session, spent, unsent, waiting }: Facts): string => {
  const { activity, budget = {} } = session
  const lack = problemOfActivity(session)
  const state = lack === undefined ? (activity?.state ?? "nothing ran yet") : problemWords(lack)
  const why = activity?.error === undefined ? "" : ` (${line(publishable(activity.error.message, []), 300)})`
  return [
    `**State** ${state}${why}`,
    `**Model** ${modelText(session)}${session.agent === undefined ? "" : `, agent ${session.agent}`}`,
    `**Spent** ${dollars(spent.cost)} of ${budgetText(budget)}`,
    `**Waiting** ${waiting} prompts, ${questions} questions, ${permissions} permissions`,
    ...(unsent === 0 ? [] : [`**Not posted yet** ${unsent} messages`]),
    ...(problem === null ? [] : [`⚠️ ${line(problem, 300)}`])
  ].join("\n")
}

const marks = { pending: "⬜", in_progress: "▶️", done: "✅", cancelled: "✖️" } as const

const answerOf = (messages: ReadonlyArray<Message>): string =>
  messages
    .toReversed()
    .flatMap((message) => (message.type === "assistant" ? [message] : []))
    .flatMap(({ content }) => content.toReversed())
    .flatMap((part) => (part.type === "text" && part.text !== undefined && part.text.trim() !== "" ? [part.text] : []))
    .at(0) ?? ""

/** What a session has done: its todo list, and the beginning of its last answer. */
export const summaryText = (
  session: Session,
  {
    messages,
    todos,
    total
  }: { readonly messages: ReadonlyArray<Message>; readonly todos: ReadonlyArray<TodoItem>; readonly total: number },
  secrets: ReadonlyArray<string>
): string => {
  const answer = publishable(answerOf(messages), secrets)
  return [
    `**${line(publishable(session.title ?? session.id, secrets), 200)}** ${total} messages, ${dollars(session.cost)}`,
    ...todos.slice(0, 20).map(({ status, text }) => `${marks[status]} ${line(publishable(text, secrets), 120)}`),
    ...(answer === "" ? [] : [`**Last answer** ${clip(answer.replaceAll("```", "'''"), 900)}`])
  ].join("\n")
}
