/**
 * Settles what a dead process left open in a session: calls without a result, a step without an end, an activity still
 * marked as running. All of it is settled as failed before the next provider request; nothing runs again.
 * Spec: EX-D1, EX-D2 (TU-2, TU-13).
 */
import { Effect } from "effect"
import { processEnded } from "@daybook/log/coordination/CutOff"
import type { AssistantMessage, Session } from "@daybook/log/domain/Message"
import { type Draft, draft } from "@daybook/log/events/SessionEvents"
import { SessionStore, type UnsettledTool } from "@daybook/log/store/SessionStore"
import { estimateOf, type Used } from "../model/Usage.ts"

const failedCall = ({ callID, executed, messageID, metadata }: UnsettledTool): Draft =>
  draft("session.next.tool.failed", {
    assistantMessageID: messageID,
    callID,
    error: { type: "tool.interrupted", message: "Tool execution interrupted" },
    provider: { executed, ...(metadata === undefined ? {} : { metadata }) }
  })

/** Estimated usage of the step; empty when the log does not have the size of its request. */
const usedBy = ({ content, inputEstimate, price }: AssistantMessage): Partial<Used> => {
  if (inputEstimate === undefined) return {}
  const sizes = content.map((part) =>
    part.type === "tool" ? (part.raw ?? JSON.stringify(part.input ?? "")).length : (part.text ?? "").length
  )
  const sum = (kept: (index: number) => boolean) => sizes.reduce((all, size, at) => (kept(at) ? all + size : all), 0)
  const received = { all: sum(() => true), reasoning: sum((at) => content[at]?.type === "reasoning") }
  return estimateOf(inputEstimate, received, price)
}

/** Returns the events that settle leftover work. Call it only for a session without a running owner. */
export const make = Effect.gen(function* () {
  const store = yield* SessionStore

  return Effect.fn("Recovery.settle")(function* ({ activity, compaction, id }: Session) {
    const calls = yield* store.unsettledTools(id)
    const step = yield* store.openStep(id)
    const drafts: Array<Draft> = [
      ...calls.map(failedCall),
      ...(step === undefined
        ? []
        : [draft("session.next.step.failed", { assistantMessageID: step.id, error: processEnded, ...usedBy(step) })])
    ]
    if (compaction?.state === "running") {
      // The process that ran this compaction is gone, so its end is recorded here (CM-7).
      drafts.push(draft("session.next.compaction.failed", { messageID: compaction.id, error: processEnded }))
    }
    if (activity?.state === "running") {
      // A damaged event must not keep the session from going on.
      const stoppedAt = yield* Effect.catchTag(store.lastWork(id), "EventUnreadable", () => Effect.succeed(undefined))
      drafts.push(
        draft("session.next.activity.settled", {
          activityID: activity.id,
          outcome: "interrupted",
          error: processEnded,
          ...(stoppedAt === undefined ? {} : { stoppedAt })
        })
      )
    }
    return drafts
  })
})
