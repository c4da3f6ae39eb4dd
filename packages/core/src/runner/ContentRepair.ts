/**
 * Repairs a session whose request was rejected because of its content: stores which parts the model is not shown from now on,
 * so that the turn can be assembled again. `request/Repair.ts` chooses the parts. Spec: RQ-644..RQ-648.
 */
import { Array as Arr, Effect, Ref } from "effect"
import { type Draft, draft } from "@daybook/log/events/SessionEvents"
import { EventLog } from "@daybook/log/log/EventLog"
import { ProviderFailed } from "../domain/RunFailure.ts"
import { type Change, type PartRef, repair, type Trial } from "../request/Repair.ts"
import { shownFor } from "../request/Request.ts"
import type * as Activity from "./Activity.ts"
import type { Ready } from "./Boundary.ts"

/** The trial whose request is in flight; undefined after an accepted request. */
export type TrialRef = Ref.Ref<Trial | undefined>

export interface Rejection {
  readonly owned: Activity.Owned
  readonly activity: Ref.Ref<Activity.Activity>
  readonly ready: Ready
  readonly trial: TrialRef
  readonly error: ProviderFailed
}

const maxReasonChars = 300

const withheld = (reason: string | undefined) => (part: PartRef) =>
  draft("session.next.part.withheld", { ...part, ...(reason === undefined ? {} : { reason }) })

const draftsOf = ({ shown, withheld: parts }: Change, reason: string): ReadonlyArray<Draft> => [
  ...shown.map(withheld(undefined)),
  ...parts.map(withheld(reason.slice(0, maxReasonChars)))
]

/** The failure with what a person can do. */
const withAdvice = ({ details, overflow, partial, providerID, retryable, sessionID }: ProviderFailed): ProviderFailed =>
  new ProviderFailed({
    sessionID,
    providerID,
    retryable,
    overflow,
    partial,
    details: `${details}; take the prompt back with daybook undo, or choose another model with daybook switch`
  })

export const make = Effect.gen(function* () {
  const log = yield* EventLog

  /** Succeeds when the turn can be assembled again without the rejected parts; else fails with the error. */
  return Effect.fnUntraced(function* ({ activity, error, owned, ready, trial }: Rejection) {
    const before = yield* Ref.get(trial)
    const { rejected } = error
    if (error.partial || (rejected === undefined && before === undefined)) return yield* error
    const { info, messages, session } = ready
    const { opening } = yield* Ref.get(activity)
    const change: Change =
      rejected === undefined
        ? { shown: before?.trying ?? [], withheld: [], trial: undefined }
        : repair({ messages, shown: shownFor(info, session.prunedSeq), opening, rejected, before })
    const drafts = draftsOf(change, error.details)
    if (Arr.isNonEmptyReadonlyArray(drafts)) yield* log.append(owned.sessionID, drafts, { owner: owned.owner })
    yield* Ref.set(trial, change.trial)
    if (change.trial !== undefined) return
    // Without a reason and without anything to try, content is one guess of many.
    const isAbout = rejected !== undefined && (rejected.kind !== "unknown" || before !== undefined)
    return yield* isAbout ? withAdvice(error) : error
  })
})
