/** Does what slash commands say. Spec: DI-40, DI-41, DI-66 in specs/discord.md. */
import { Effect } from "effect"
import { problemOfActivity, problemWords } from "@daybook/log/domain/AnswerProblem"
import type { Message, Session } from "@daybook/log/domain/Message"
import type { TodoItem, Budget } from "@daybook/log/domain/Values"
import { promptOfCommand, sessionOf } from "../domain/Names.ts"
import type { Thread } from "../inbox/Admission.ts"
import { Book } from "../live/Book.ts"
import { Sender } from "../live/Sender.ts"
import { type Beginning, Outbox } from "../outbox/Outbox.ts"
import type { PostKey } from "../post/Post.ts"
import { clip, line, publishable } from "../post/Text.ts"
import type { Interaction } from "../wire/Packets.ts"

// The texts of `/status`, `/summary` and `/budget`.

const dollars = (cost: number): string => `$${cost.toFixed(cost < 1 ? 4 : 2)}`

const budgetText = ({ cost, tokens }: Budget): string => {
  const parts = [
    ...(cost === undefined ? [] : [dollars(cost)]),
    ...(tokens === undefined ? [] : [`${tokens.toLocaleString("en-US")} tokens`])
  ]
  return parts.length === 0 ? "no limit" : parts.join(", ")
}

const modelText = ({ model }: Session): string =>
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

const statusText = ({ permissions, problem, questions, session, spent, unsent, waiting }: Facts): string => {
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
const summaryText = (
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

export const option = ({ data }: Interaction, name: string): unknown =>
  data?.options?.find((each) => each.name === name)?.value

const textOf = (interaction: Interaction): string => {
  const value = option(interaction, "text")
  return typeof value === "string" ? value.trim() : ""
}

const nameOf = ({ member }: Interaction): string =>
  line(member?.user.global_name ?? member?.user.username ?? "A member", 60)

/** Intends a message of the bot that begins a thread, in the channel. */
const begin = (
  channel: string,
  key: Pick<PostKey, "sessionID" | "event">,
  content: string,
  target: Omit<Beginning["target"], "type">
) =>
  Effect.gen(function* () {
    const [outbox, sender] = [yield* Outbox, yield* Sender]
    yield* outbox.put(channel, {
      type: "post",
      key: { ...key, chunk: 0 },
      body: { content },
      target: { type: "begin", ...target }
    })
    yield* sender.wake(channel)
    return "A thread follows."
  })

export const ask = (channel: string, interaction: Interaction) => {
  const text = textOf(interaction)
  const content = clip(`**${nameOf(interaction)}** asks: ${publishable(text, [])}`, 2_000)
  return text === ""
    ? Effect.succeed("Write a question.")
    : begin(channel, { sessionID: sessionOf(channel), event: `ask:${interaction.id}` }, content, { text })
}

const fork = ({ id, parent }: Thread, interaction: Interaction) =>
  begin(
    parent,
    { sessionID: sessionOf(id), event: `fork:${interaction.id}` },
    `**${nameOf(interaction)}** goes on from <#${id}>`,
    { fork: sessionOf(id) }
  )

const queue = Effect.fnUntraced(function* ({ id }: Thread, interaction: Interaction) {
  const text = textOf(interaction)
  if (text === "") return "Write a question."
  const prompt = { text }
  const book = yield* Book
  yield* book.prompt({
    id: promptOfCommand(interaction.id),
    sessionID: sessionOf(id),
    prompt,
    delivery: "queue",
    expand: false
  })
  return `**${nameOf(interaction)}** asks next: ${publishable(text, [])}`
})

const status = Effect.fnUntraced(function* ({ id }: Thread) {
  const [book, outbox] = [yield* Book, yield* Outbox]
  const sessionID = sessionOf(id)
  const session = yield* book.get(sessionID)
  const [inbox, usage, questions, permissions, place, unsent] = yield* Effect.all([
    book.inbox(sessionID),
    book.usage(sessionID),
    book.questions(sessionID),
    book.permissions,
    outbox.place(id),
    outbox.waiting(id)
  ])
  return statusText({
    session,
    spent: usage.total,
    waiting: inbox.length,
    questions: questions.length,
    permissions: permissions.filter((each) => each.sessionID === sessionID).length,
    problem: place?.problem ?? null,
    unsent
  })
})

/** Answers `/status` in a channel with its problems. */
export const channelStatus = Effect.fnUntraced(function* (channel: string) {
  const outbox = yield* Outbox
  const places = yield* outbox.places
  const threads = places.filter(({ parent }) => parent === channel)
  const problems = places.filter(
    ({ channel: id, parent, problem }) => problem !== null && (parent === channel || id === channel)
  )
  const unsent = yield* outbox.waiting(channel)
  return [
    `**Threads** ${threads.length}`,
    ...(unsent === 0 ? [] : [`**Not posted yet** ${unsent} messages`]),
    ...problems.slice(0, 10).map(({ channel: id, problem }) => `⚠️ <#${id}> ${line(problem ?? "", 120)}`)
  ].join("\n")
})

const summary = Effect.fnUntraced(function* ({ id }: Thread, secrets: ReadonlyArray<string>) {
  const book = yield* Book
  const sessionID = sessionOf(id)
  const session = yield* book.get(sessionID)
  const [todos, last] = yield* Effect.all([
    book.todos(sessionID),
    book.messages({ sessionID, limit: 20, order: "desc" })
  ])
  return summaryText(session, { todos, messages: last.items.toReversed(), total: last.total }, secrets)
})

const model = Effect.fnUntraced(function* ({ id }: Thread, interaction: Interaction) {
  const book = yield* Book
  const given = option(interaction, "model")
  if (typeof given !== "string") return modelText(yield* book.get(sessionOf(id)))
  const slash = given.indexOf("/")
  if (slash <= 0 || slash === given.length - 1) return "Write provider/model."
  const ref = { providerID: given.slice(0, slash), id: given.slice(slash + 1) }
  yield* book.switchModel(sessionOf(id), ref)
  return `The next turn uses ${line(given, 200)}.`
})

const budget = Effect.fnUntraced(function* ({ id }: Thread, interaction: Interaction) {
  const book = yield* Book
  const [cost, tokens] = [option(interaction, "cost"), option(interaction, "tokens")]
  const given: Budget = {
    ...(typeof cost === "number" ? { cost } : {}),
    ...(typeof tokens === "number" ? { tokens } : {})
  }
  if (Object.keys(given).length > 0) yield* book.setBudget(sessionOf(id), given)
  const { budget: now = {} } = yield* book.get(sessionOf(id))
  return `This session may spend ${budgetText(now)}.`
})

/** What a command does; its text is the answer. */
export type Work = Effect.Effect<string, { readonly message: string }, Book | Outbox | Sender>

/** A command in a thread; undefined for a command that does not exist there. */
export const inThread = (
  name: string,
  thread: Thread,
  interaction: Interaction,
  secrets: ReadonlyArray<string>
): Work | undefined => {
  switch (name) {
    case "queue":
      return queue(thread, interaction)
    case "stop":
      return Effect.as(
        Effect.flatMap(Book, (book) => book.interrupt(sessionOf(thread.id))),
        "Stopped."
      )
    case "status":
      return status(thread)
    case "model":
      return model(thread, interaction)
    case "budget":
      return budget(thread, interaction)
    case "summary":
      return summary(thread, secrets)
    case "fork":
      return fork(thread, interaction)
    default:
      return undefined
  }
}
