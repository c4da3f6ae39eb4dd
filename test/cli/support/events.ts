/** Creates events as the log and the live channel return them, for the renderers' tests. */
import type { MessageID, SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import type { LiveEvent, SessionEvent } from "../../../packages/log/src/events/SessionEvents.ts"

// Valid identifiers; the renderers do not parse them.
export const promptID = "msg_prompt" as MessageID
const messageID = "msg_answer" as MessageID
const sessionID = "ses_test" as SessionID

let seq = 0
const durable = (type: SessionEvent["type"], data: unknown, version = 1) =>
  ({
    position: ++seq,
    seq,
    id: `evt_${seq}`,
    type,
    version,
    sessionID,
    created: Date.UTC(2026, 0, 2, 3, 4, 5),
    data
  }) as unknown as SessionEvent // one constructor for all types; each caller below gives the type's own data

/** The same event, this many seconds later. */
const later = (event: SessionEvent, seconds: number): SessionEvent => ({
  ...event,
  created: event.created + seconds * 1_000
})

/** The time of the events. */
export const eventTime = Date.UTC(2026, 0, 2, 3, 4, 5)

export const promoted = (text = "hi") =>
  durable("session.next.prompt.promoted", { messageID: promptID, prompt: { text }, timeCreated: 0 })
export const textEnded = (textID: string, text: string) =>
  durable("session.next.text.ended", { assistantMessageID: messageID, textID, text })
export const toolCalled = (callID: string, tool: string, input: Record<string, unknown>) =>
  durable("session.next.tool.called", {
    assistantMessageID: messageID,
    callID,
    tool,
    input,
    provider: { executed: false }
  })
export const toolSucceeded = (callID: string, structured: Record<string, unknown> = {}, seconds = 0, text?: string) =>
  later(
    durable("session.next.tool.success", {
      assistantMessageID: messageID,
      callID,
      structured,
      content: text === undefined ? [] : [{ type: "text", text }],
      provider: { executed: false }
    }),
    seconds
  )
export const toolFailed = (callID: string, message: string, seconds = 0) =>
  later(
    durable("session.next.tool.failed", {
      assistantMessageID: messageID,
      callID,
      error: { type: "test", message },
      provider: { executed: false }
    }),
    seconds
  )
export const toolProgress = (callID: string, text: string) =>
  durable("session.next.tool.progress", {
    assistantMessageID: messageID,
    callID,
    structured: {},
    content: [{ type: "text", text }]
  })
export const reasoningEnded = (reasoningID: string, text: string) =>
  durable("session.next.reasoning.ended", { assistantMessageID: messageID, reasoningID, text })
export const toolInputStarted = (callID: string, name: string) =>
  durable("session.next.tool.input.started", { assistantMessageID: messageID, callID, name })
export const retried = (attempt: number, message: string, waitMs?: number, statusCode?: number) =>
  durable("session.next.retried", {
    attempt,
    ...(waitMs === undefined ? {} : { attempts: 8, waitMs }),
    error: { message, isRetryable: true, ...(statusCode === undefined ? {} : { statusCode }) }
  })
export const compactionStarted = () => durable("session.next.compaction.started", { messageID, reason: "auto" })
export const compactionEnded = (text: string, tokensBefore: number) =>
  durable("session.next.compaction.ended", { messageID, reason: "auto", text, recent: "", tokensBefore }, 2)
export const compactionFailed = (message: string) =>
  durable("session.next.compaction.failed", { messageID, error: { type: "provider", message } })
export const stepStarted = () =>
  durable("session.next.step.started", {
    assistantMessageID: messageID,
    agent: "build",
    model: { providerID: "p", id: "m" }
  })
export const activitySettled = (outcome: "completed" | "failed" | "interrupted", message?: string) =>
  durable("session.next.activity.settled", {
    activityID: "act_1",
    outcome,
    ...(message === undefined ? {} : { error: { type: "unknown", message } })
  })
export const delta = (textID: string, text: string): LiveEvent => ({
  type: "session.next.text.delta",
  sessionID,
  data: { assistantMessageID: messageID, textID, delta: text }
})
export const reasoningDelta = (reasoningID: string, text: string): LiveEvent => ({
  type: "session.next.reasoning.delta",
  sessionID,
  data: { assistantMessageID: messageID, reasoningID, delta: text }
})
