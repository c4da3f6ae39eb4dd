/**
 * Provides the built-in tools that need their session: `question`, `todo`, `task`. They exist only where the store and
 * the facade exist; file and command tools need neither. Location-scoped. Spec: TO-81..TO-86, TO-91..TO-93,
 * TO-101..TO-106 in specs/tools.md.
 */
import { createHash } from "node:crypto"
import * as Tool from "@effect/ai/Tool"
import { Effect, Schema } from "effect"
import { MessageID, SessionID } from "@daybook/log/domain/Identifiers"
import { CurrentLocation, defaultAgent, StoredError, type TodoItem, TodoItems } from "@daybook/log/domain/Values"
import { questionTool } from "@daybook/log/store/QuestionStore"
import { SessionStore } from "@daybook/log/store/SessionStore"
import { Agents } from "../agent/Agents.ts"
import { type Agent, canAssist } from "../domain/Agent.ts"
import { QuestionItems } from "../domain/Question.ts"
import { literal } from "../domain/Rule.ts"
import { ToolDeclined, ToolFailure } from "../domain/ToolError.ts"
import { Permission } from "../permission/Permission.ts"
import { define, type ToolCall } from "../tool/ToolDefinition.ts"
import { type ChildResult, ChildSessions } from "./ChildSessions.ts"
import { Questions } from "./Questions.ts"

// The tool `task`: another agent works in a child session, and its last answer is returned.

const taskParameters = {
  agent: Schema.optionalWith(
    Schema.NonEmptyString.pipe(Schema.maxLength(200)).annotations({ description: "Which agent does it" }),
    { exact: true }
  ),
  description: Schema.NonEmptyString.pipe(Schema.maxLength(200)).annotations({
    description: "The task in a few words, as its title"
  }),
  prompt: Schema.NonEmptyString.pipe(Schema.maxLength(100_000)).annotations({
    description: "The whole task: the agent sees nothing of this conversation"
  })
}

const success = Schema.Struct({
  sessionID: SessionID,
  state: Schema.Literal("completed"),
  text: Schema.String,
  /** What the last answer lacks (TO-620). */
  error: Schema.optionalWith(StoredError, { exact: true })
})

/** The result for the parent's model: the answer's text, and a sentence if the answer is not whole. */
const reportOf = (text: string, error: StoredError | undefined): string =>
  [text, error?.message ?? (text === "" ? "The agent ended without an answer." : "")]
    .filter((part) => part !== "")
    .join("\n\n")

/** How many agents the description lists; the others can be used too. */
const namedAgents = 30

const about = (agents: ReadonlyArray<Agent>): string => {
  const lines = agents
    .filter(canAssist)
    .slice(0, namedAgents)
    .map(({ description, name }) =>
      description === undefined ? `- ${name}` : `- ${name}: ${description.slice(0, 200)}`
    )
  return [
    "Hands a piece of work to an agent with a session of its own, waits for it, and returns its last answer. Several " +
      "calls in one answer run side by side. Agents:",
    ...lines
  ].join("\n")
}

/** The child's name, derived from the call, so that the same call always has the same child. */
const childName = ({ callID, messageID, sessionID }: ToolCall): string =>
  createHash("sha256")
    .update(JSON.stringify([sessionID, messageID, callID]))
    .digest("hex")
    .slice(0, 40)

const refuse = (type: string, message: string) => new ToolFailure({ type, message })

/** The failure that the parent's model reads if the child did not complete. */
const failureOf = ({ failure, session }: ChildResult): ToolFailure | undefined => {
  if (failure === undefined) return undefined
  const child = `the session of the task, ${session.id},`
  if (failure._tag !== "RunInterrupted") return refuse("task.failed", `${child} failed: ${failure.message}`)
  return session.activity?.error?.type === "declined"
    ? refuse("task.declined", `${child} was stopped by a person: ${session.activity.error.message}`)
    : refuse("task.interrupted", `${child} was interrupted before it was done`)
}

/** `task`, for the sessions of the current Location. */
const makeTask = Effect.fnUntraced(function* ({ taskDepth }: { readonly taskDepth: number }) {
  const agents = yield* Agents
  const permission = yield* Permission
  const children = yield* ChildSessions
  const store = yield* SessionStore
  const here = yield* CurrentLocation

  /** The named agent; without a name the caller's agent if it may take tasks, else the default agent. */
  const chosen = Effect.fnUntraced(function* (name: string | undefined, caller: Agent) {
    const wanted = name ?? (canAssist(caller) ? caller.name : defaultAgent)
    const found = yield* Effect.mapError(agents.get(wanted, here), ({ message }) => refuse("tool.input", message))
    if (canAssist(found)) return found
    const usable = (yield* agents.list(here)).filter(canAssist).map((agent) => agent.name)
    return yield* refuse("tool.input", `agent "${wanted}" takes no tasks; there are: ${usable.join(", ")}`)
  })

  const tool = Tool.make("task", { description: about(yield* agents.list(here)), parameters: taskParameters, success })

  return define(tool, {
    handler: Effect.fn("Tool.task")(function* ({ agent: name, description, prompt }, call) {
      const agent = yield* chosen(name, call.agent)
      yield* permission.authorize({
        ...call,
        permission: "task",
        subject: Effect.succeed({ type: "task", agent: agent.name, description, prompt }),
        resources: [agent.name],
        title: `Give agent ${agent.name} a task: ${description}`,
        always: [literal(agent.name)]
      })
      const hash = childName(call)
      const unavailable = ({ message }: { readonly message: string }) =>
        refuse("tool.execution", `the task could not be started: ${message}`)
      const parent = yield* Effect.mapError(store.get(call.sessionID), unavailable)
      const depth = (yield* Effect.mapError(store.ancestors(call.sessionID), unavailable)).length
      if (depth >= taskDepth) return yield* refuse("task.depth", `tasks do not go deeper than ${taskDepth}`)
      const model = parent.model ?? call.agent.model
      const result = yield* Effect.mapError(
        children.run({
          session: {
            id: SessionID.make(`ses_${hash}`),
            parentID: call.sessionID,
            location: call.location,
            title: description,
            agent: agent.name,
            model: agent.model === undefined ? model : undefined
          },
          prompt: { id: MessageID.make(`msg_${hash}`), prompt: { text: prompt } },
          depth: depth + 1,
          created: ({ id }) => call.progress({ structured: { sessionID: id }, content: [] })
        }),
        unavailable
      )
      const failed = failureOf(result)
      if (failed !== undefined) return yield* failed
      const { session, text } = result
      const error = session.activity?.error
      return { sessionID: session.id, state: "completed" as const, text, ...(error === undefined ? {} : { error }) }
    }),
    render: ({ error, sessionID, state, text }) => ({
      structured: { sessionID, state, ...(error === undefined ? {} : { problem: error.type }) },
      content: [{ type: "text", text: reportOf(text, error) }]
    })
  })
})

// The tool `question`: asks a person and waits without a time limit.

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
const makeQuestion = Effect.map(Questions, (waiting) =>
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

// The tool `todo`: replaces or returns the session's list of work.

const todoParameters = { items: Schema.optionalWith(TodoItems, { exact: true }) }

const TodoTool = Tool.make("todo", {
  description:
    "Keeps the list of steps for longer work. With items, replaces the whole list; without, returns the current list. " +
    "Have one item in progress at a time, and mark it done as soon as it is.",
  parameters: todoParameters,
  success: Schema.Struct({ items: TodoItems, changed: Schema.Boolean })
})

/** A longer list would be truncated for programs (TO-21). */
const longestList = 32 * 1024

const counted = (items: ReadonlyArray<TodoItem>): string => {
  const of = (status: TodoItem["status"]) => items.filter((item) => item.status === status).length
  return (
    `The list has ${items.length} ${items.length === 1 ? "item" : "items"}: ${of("done")} done, ` +
    `${of("in_progress")} in progress, ${of("pending")} pending, ${of("cancelled")} cancelled.`
  )
}

/** `todo`, for the list of the call's session. */
const makeTodo = Effect.map(SessionStore, (store) =>
  define(TodoTool, {
    readOnly: true,
    handler: Effect.fn("Tool.todo")(function* ({ items }, { sessionID }) {
      if (items !== undefined) {
        const size = Buffer.byteLength(JSON.stringify(items))
        if (size <= longestList) return { items, changed: true }
        return yield* new ToolFailure({
          type: "tool.input",
          message: `the list has ${size} bytes, ${longestList} are allowed; shorten the texts`
        })
      }
      const current = yield* Effect.mapError(
        store.todos(sessionID),
        ({ message }) => new ToolFailure({ type: "tool.execution", message: `the list cannot be read: ${message}` })
      )
      return { items: current, changed: false }
    }),
    // A change is not echoed: the model has just written the list.
    render: ({ changed, items }) => ({
      structured: { items, changed },
      content: changed ? [{ type: "text", text: counted(items) }] : []
    })
  })
)

export interface SessionToolsOptions {
  /** Whether a person can answer; if false, there is no `question` tool. */
  readonly questions: boolean
  /** A session with this many ancestors starts no children. */
  readonly taskDepth: number
}

export const make = Effect.fnUntraced(function* ({ questions, taskDepth }: SessionToolsOptions) {
  const always = [yield* makeTodo, yield* makeTask({ taskDepth })]
  return questions ? [...always, yield* makeQuestion] : always
})
