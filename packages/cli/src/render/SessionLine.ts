/** Renders a session as a line, as JSON, and as the head of its transcript. Pure. Spec: CL-14 in specs/cli.md. */
import { problemOfActivity, problemWords } from "@daybook/log/domain/AnswerProblem"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import type { Session } from "@daybook/log/domain/Message"
import { type Budget, modelText, type SessionMetrics } from "@daybook/log/domain/Values"
import { many, timeText } from "../support/Amounts.ts"
import { columns, dateTime, oneLine } from "./Plain.ts"

/** The state of the last activity, or what its answer lacks (CL-621). */
const stateOf = (session: Session): string => {
  const { activity } = session
  const problem = problemOfActivity(session)
  if (problem !== undefined) return problemWords(problem)
  return activity?.error?.type === "process.ended" ? "cut off" : (activity?.state ?? "new")
}

/** What a session with waiting prompts waits for: its run, or a node with this workspace. */
export type Waiting = ReadonlyMap<SessionID, { readonly workspaceID: string | undefined }>

const waitingState = ({ workspaceID }: { readonly workspaceID: string | undefined }) =>
  workspaceID === undefined ? "waiting" : oneLine(`waiting for ${workspaceID}`, 48)

/** Sessions in columns: last use, state, id, title, directory. The state is `waiting` if prompts wait and nothing runs. */
export const sessionTable = (sessions: ReadonlyArray<Session>, waiting: Waiting = new Map()): string =>
  columns(
    sessions.map((session) => {
      const waits = session.activity?.state === "running" ? undefined : waiting.get(session.id)
      return [
        dateTime(session.updatedAt),
        waits === undefined ? stateOf(session) : waitingState(waits),
        session.id,
        oneLine(session.title ?? "-", 48),
        oneLine(session.location.directory, 200)
      ]
    })
  )

export const limits = ({ cost, tokens }: Budget): string => {
  const each = [cost === undefined ? [] : [`$${cost}`], tokens === undefined ? [] : [`${tokens} tokens`]].flat()
  return each.length === 0 ? "no limit" : each.join(", ")
}

/** Counts of a session and its time at work on a line. */
export const metricsText = ({ cost, durationMs, tokens, toolCalls, turns }: SessionMetrics): string =>
  [
    many(turns, "turn"),
    many(toolCalls, "tool call"),
    `${timeText(durationMs)} at work`,
    `${tokens.input} tokens in (${tokens.cache.read} from the cache), ${tokens.output} out`,
    `$${cost.toFixed(4)}`
  ].join(", ")

export const sessionHead = (session: Session, metrics?: SessionMetrics): string => {
  const { origin, prunedSeq: pruned, tokens } = session
  const problem = problemOfActivity(session)
  const facts: ReadonlyArray<readonly [string, string | undefined]> = [
    ["session", session.id],
    ["title", session.title === undefined ? undefined : oneLine(session.title)],
    ["directory", oneLine(session.location.directory, 400)],
    ["agent", session.agent],
    ["model", session.model === undefined ? undefined : modelText(session.model)],
    ["created", dateTime(session.createdAt)],
    ["used", dateTime(session.updatedAt)],
    [
      "source",
      origin?.cronJobID === undefined ? origin?.source : `${origin.source ?? "cron"}, job ${origin.cronJobID}`
    ],
    ["instructions", session.instructions],
    [
      "activity",
      session.activity === undefined ? undefined : [stateOf(session), problem?.message].filter(Boolean).join(": ")
    ],
    ["work", metrics === undefined ? undefined : metricsText(metrics)],
    ["tokens", `${tokens.input} in, ${tokens.output} out`],
    [
      "pruned",
      pruned === undefined || pruned < 0 ? undefined : `the model is shown no long tool results up to ${pruned}`
    ],
    ["compaction", session.compaction?.state],
    ["budget", session.budget === undefined ? undefined : limits(session.budget)],
    ["cost", session.cost === 0 ? undefined : `$${session.cost.toFixed(4)}`]
  ]
  return columns(facts.flatMap(([name, value]) => (value === undefined ? [] : [[name, oneLine(value, 400)]])))
}
