/**
 * Builds the request that a turn would send now: the inputs it would promote, the context update it would tell the
 * model, and their frame. Writes nothing. Does not compact.
 * Spec: RQ-37..RQ-39.
 */
import { Effect } from "effect"
import { MessageID, type SessionID } from "@daybook/log/domain/Identifiers"
import type { Message } from "@daybook/log/domain/Message"
import { join, type Wishes } from "@daybook/log/domain/Values"
import type { ReadError } from "@daybook/log/log/EventLog"
import { SessionStore } from "@daybook/log/store/SessionStore"
import { Lineage } from "../agent/Lineage.ts"
import { ContextEpoch, type Epoch, InitializationBlocked } from "../context/ContextEpoch.ts"
import { ContextRegistry } from "../context/ContextRegistry.ts"
import { initialize, type Observed, reconcile, replace } from "../context/SystemContext.ts"
import type { ShownRequest } from "../request/Recorded.ts"
import { noOutput } from "../request/StructuredOutput.ts"
import type * as History from "./History.ts"
import { type Eligibility, pick } from "./Activity.ts"
import * as Preparation from "./Preparation.ts"
import { messagesOf } from "./Boundary.ts"
import type { RunError } from "./RunError.ts"

export interface PreviewParts {
  readonly history: History.History
  readonly preparation: Preparation.Preparation
  readonly eligibility: Eligibility
}

type Planned = Pick<Epoch, "baseline" | "baselineSeq"> & { readonly told?: string }

/** The result that `ContextEpoch.prepare` and `advance` would have. */
const plan = (
  sessionID: SessionID,
  epoch: Epoch | undefined,
  observed: Observed,
  compactedSeq: number
): Effect.Effect<Planned, InitializationBlocked> =>
  Effect.gen(function* () {
    if (epoch === undefined) {
      const first = initialize(observed)
      if (first._tag === "Blocked") return yield* new InitializationBlocked({ keys: first.keys })
      return { baseline: first.baseline, baselineSeq: Number.MAX_SAFE_INTEGER }
    }
    const fresh = compactedSeq > epoch.baselineSeq ? replace(observed, epoch.snapshot) : undefined
    if (fresh?._tag === "Ready") return { baseline: fresh.baseline, baselineSeq: Number.MAX_SAFE_INTEGER }
    const change = reconcile(observed, epoch.snapshot)
    switch (change._tag) {
      case "Unchanged":
        return epoch
      case "Updated":
        return { ...epoch, told: change.text }
      case "Replaced":
        return { baseline: change.baseline, baselineSeq: Number.MAX_SAFE_INTEGER }
    }
  })

/** Builds the preview for sessions at the current Location. */
export const make = Effect.fnUntraced(function* ({ eligibility, history, preparation }: PreviewParts) {
  const store = yield* SessionStore
  const lineage = yield* Lineage
  const epochs = yield* ContextEpoch
  const registry = yield* ContextRegistry

  return Effect.fn("Preview.request")(function* (
    sessionID: SessionID
  ): Effect.fn.Return<ShownRequest, RunError | ReadError> {
    const standing = yield* store.standing(sessionID)
    const { session } = standing
    const agent = yield* lineage.agentOf(session)
    const { info } = yield* preparation.resolve(Preparation.modelOf(session, agent), agent.settings ?? {})
    const observed = yield* registry.observe({ sessionID, agent, model: info })
    const epoch = yield* epochs.get(sessionID)
    const stored = yield* history.load(sessionID, epoch?.baselineSeq ?? -1)
    const compacted = stored.findLast(({ type }) => type === "compaction")
    const { baseline, baselineSeq, told } = yield* plan(sessionID, epoch, observed, compacted?.seq ?? -1)
    const next = pick(standing) ?? "resume"
    const inputs = yield* eligibility.eligible(sessionID, next)
    const { wishes: held } = yield* store.continued(sessionID, { trigger: next, admittedSeq: inputs[0]?.admittedSeq })
    const seq = stored.at(-1)?.seq ?? 0
    const prompts = messagesOf(inputs, seq)
    const update: ReadonlyArray<Message> =
      told === undefined
        ? []
        : [
            {
              type: "system",
              id: MessageID.make("msg_preview"),
              seq: seq + 1 + inputs.length,
              createdAt: 0,
              text: told
            }
          ]
    const messages: ReadonlyArray<Message> = [
      ...stored.filter((message) => message.type !== "system" || message.seq > baselineSeq),
      ...prompts,
      ...update
    ]
    const prepared = yield* preparation.prepare({
      session,
      agent,
      info,
      baseline,
      baselineSeq: epoch?.baselineSeq ?? -1,
      messages,
      wishes: inputs.reduce<Wishes>((held, { prompt }) => join(held, prompt), held),
      output: noOutput()
    })
    const { request } = prepared
    return {
      sessionID,
      agent: agent.name,
      model: prepared.model.info.ref,
      frame: request.frame,
      messages: request.messages,
      estimate: request.estimate
    }
  })
})
