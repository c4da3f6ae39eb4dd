/**
 * Shows a session's asks to one client as frames: each open ask once while a run is followed, and its end. Permissions
 * come from `Asks.ts`, questions of the model from the log; clients see no difference. Spec: SO-95..SO-98 in
 * specs/socket.md.
 */
import { Effect, Option, type Scope } from "effect"
import type { PendingQuestion } from "@daybook/core/domain/Question"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import type { Session } from "@daybook/log/domain/Message"
import type { LiveEvent, SessionEvent } from "@daybook/log/events/SessionEvents"
import { questionChange } from "@daybook/transcript/QuestionEvents"
import { agentDirectory } from "@daybook/transcript/row/Rows"
import type { Followed } from "@daybook/transcript/RunStream"
import type { Backend } from "../session/Backend.ts"
import type { RunFrame } from "../wire/Wire.ts"
import { type Asks, type OpenAsk, questionAsk, timeLeft } from "./Asks.ts"

export interface AskOptions {
  readonly asks: Asks
  /** Whether the client can answer permissions now. */
  readonly canAnswer: () => boolean
}

export interface AskFrames {
  /** Takes an event that may open or close a question. */
  readonly see: (event: SessionEvent | LiveEvent) => void
  /** The frames since the last call, for this run. */
  readonly take: (run: Followed) => Effect.Effect<ReadonlyArray<RunFrame>>
}

type AskFrame = Extract<RunFrame, { readonly type: "ask" }>

const permissionFrame = (
  of: object,
  { ask, request }: OpenAsk,
  session: Session | undefined,
  { timeLeftMs }: Effect.Effect.Success<ReturnType<typeof timeLeft>>
): AskFrame => ({
  type: "ask",
  ...of,
  ask,
  kind: "permission",
  tool_call_id: request.callID,
  permission: request.permission,
  resources: request.resources,
  title: request.title,
  always: request.always,
  agent: request.agent,
  session_id: request.sessionID,
  ...(request.sessionTitle === undefined ? {} : { session_title: request.sessionTitle }),
  ...(session === undefined ? {} : { cwd: agentDirectory(session.root, request.location.directory) }),
  tool: request.tool,
  subject: request.subject,
  notes: request.notes,
  ...(timeLeftMs === undefined ? {} : { time_left_ms: timeLeftMs })
})

const questionFrame = (of: object, question: PendingQuestion): AskFrame => ({
  type: "ask",
  ...of,
  ask: questionAsk(question),
  kind: "question",
  tool_call_id: question.callID,
  questions: question.questions
})

/** `changed` runs when there may be frames to take. */
export const make = Effect.fnUntraced(function* (
  { sessions, store }: Backend,
  sessionID: SessionID,
  { asks, canAnswer }: AskOptions,
  changed: () => void
): Effect.fn.Return<AskFrames, never, Scope.Scope> {
  /** Asks that were shown to the client and not closed since. */
  const told = new Map<string, AskFrame["kind"]>()
  let [due, questionsDue] = [true, true]
  let questions: ReadonlyArray<PendingQuestion> = []
  yield* Effect.acquireRelease(
    Effect.sync(() =>
      asks.follow(sessionID, {
        canAnswer,
        changed: () => {
          due = true
          changed()
        }
      })
    ),
    (leave) => Effect.sync(leave)
  )

  const see = (event: SessionEvent | LiveEvent): void => {
    const change = questionChange(event)
    if (change === undefined) return
    if (change.type === "answered" || change.type === "dismissed")
      asks.remember(questionAsk({ sessionID, ...change }), change.type === "answered" ? "answered" : "dismiss")
    // A call that ends closes its question, if it was shown.
    if (change.type !== "ended" || told.size > 0) due = questionsDue = true
  }

  const take = Effect.fnUntraced(function* ({ id, run }: Followed) {
    if (!due) return []
    due = false
    if (questionsDue) {
      questionsDue = false
      // A removed session has no questions.
      questions = yield* Effect.orElseSucceed(sessions.questions(sessionID), () => [])
    }
    const of = { ...(id === undefined ? {} : { id }), run }
    const permissions = asks.open(sessionID)
    const session =
      permissions.length === 0 ? undefined : Option.getOrUndefined(yield* Effect.option(store.get(sessionID)))
    const open = [
      ...(yield* Effect.forEach(permissions, (each) =>
        Effect.map(timeLeft(each), (left) => permissionFrame(of, each, session, left))
      )),
      ...questions.map((each) => questionFrame(of, each))
    ]
    const frames: Array<RunFrame> = []
    for (const ask of told.keys()) {
      if (open.some((each) => each.ask === ask)) continue
      told.delete(ask)
      frames.push({ type: "answered", ...of, ask, decision: asks.decisionOf(ask) ?? "closed" })
    }
    for (const frame of open) {
      if (frame.kind === "permission" && canAnswer()) asks.shown(frame.ask)
      if (told.has(frame.ask)) continue
      told.set(frame.ask, frame.kind)
      frames.push(frame)
    }
    return frames
  })

  return { see, take }
})
