/** Runs a requested compaction at a safe boundary, before any promotion. Spec: CP-41, CP-55 (specs/compaction.md). */
import { Effect, Either } from "effect"
import type { Session } from "@daybook/log/domain/Message"
import { SessionStore } from "@daybook/log/store/SessionStore"
import { Lineage } from "../agent/Lineage.ts"
import { Compaction } from "../compaction/Compaction.ts"
import { ContextEpoch } from "../context/ContextEpoch.ts"
import { noOutput } from "../request/StructuredOutput.ts"
import type { Owned } from "./Activity.ts"
import type { CheckBudget } from "./BudgetCheck.ts"
import * as History from "./History.ts"
import { modelOf, type Preparation } from "./Preparation.ts"

export interface ManualCompactionParts {
  readonly history: History.History
  readonly preparation: Preparation
  readonly budget: CheckBudget
}

export const make = Effect.fnUntraced(function* ({ budget, history, preparation }: ManualCompactionParts) {
  const store = yield* SessionStore
  const lineage = yield* Lineage
  const epochs = yield* ContextEpoch
  const compaction = yield* Compaction

  /** The request that is compacted: the one a resume would send, without new context. */
  const requested = Effect.fnUntraced(function* (owner: Owned["owner"], session: Session) {
    const agent = yield* lineage.agentOf(session)
    const { info } = yield* preparation.resolve(modelOf(session, agent), agent.settings ?? {})
    const epoch = yield* epochs.get(session.id)
    const messages = yield* History.loadOwned(history, session.id, epoch?.baselineSeq ?? -1)
    const work = yield* store.continued(session.id, { trigger: "resume", admittedSeq: undefined })
    const prepared = yield* preparation.prepare({
      session,
      agent,
      info,
      baseline: epoch?.baseline ?? "",
      baselineSeq: epoch?.baselineSeq ?? -1,
      messages,
      wishes: work.wishes,
      output: noOutput()
    })
    yield* budget(session, info)
    const { state = "completed" } = session.activity ?? {}
    const opening = state === "completed" ? [] : work.opening
    return preparation.compactable({ owner, session, agent, prepared, messages, opening })
  })

  return Effect.fnUntraced(function* (owned: Owned, session: Session) {
    if (session.compaction?.state !== "requested") return
    const { id: messageID } = session.compaction
    const request = yield* Effect.either(requested(owned.owner, session))
    // Any failure closes the request: an open request would be tried again on every wake.
    if (Either.isRight(request)) return yield* compaction.compactManually(request.right, messageID)
    const { _tag, message } = request.left
    return yield* compaction.refuse(owned, messageID, { type: _tag, message })
  })
})

export type CompactOnRequest = Effect.Effect.Success<ReturnType<typeof make>>
