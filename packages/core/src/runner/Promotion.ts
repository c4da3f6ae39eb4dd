/**
 * Promotes waiting inputs into an activity: one append holds the activity's start, the promotions and the reminders for
 * the model. Spec: EX-D3, EX-D4 (TU-3, PR-2..PR-6), RQ-24, IB-41.
 */
import { Array as Arr, Effect, Ref } from "effect"
import { Identifiers } from "@daybook/log/domain/Identifiers"
import type { Input, Session } from "@daybook/log/domain/Message"
import { type Draft, draft } from "@daybook/log/events/SessionEvents"
import { SessionStore } from "@daybook/log/store/SessionStore"
import { lastTurn, steered } from "../request/Reminders.ts"
import * as Activity from "./Activity.ts"
import type { FencedAppend } from "./FencedAppend.ts"
import * as Eligibility from "./Eligibility.ts"

/** A reminder for the model. */
export const reminder = (identifiers: Identifiers["Type"], text: string): Effect.Effect<Draft> =>
  Effect.map(identifiers.message, (messageID) => draft("session.next.synthetic", { messageID, text }))

/** The texts of the reminders that a turn with these inputs adds. */
const remindersFor = (activity: Activity.Activity, inputs: ReadonlyArray<Input>): ReadonlyArray<string> => [
  ...(activity.turns > 0 && inputs.length > 0 ? [steered(inputs.length)] : []),
  ...(Activity.isLastTurn(activity) ? [lastTurn] : [])
]

/** Whether the activity may continue the session's last one: then the log is asked where that began (RQ-45). */
const mayContinue = ({ activity }: Session, trigger: Eligibility.Trigger): boolean =>
  trigger === "resume" || (trigger === "steer" && activity !== undefined && activity.state !== "completed")

/** The event that opens the activity, unless it is in the log. */
const opening = ({ id, started, trigger }: Activity.Activity): ReadonlyArray<Draft> =>
  started ? [] : [draft("session.next.activity.started", { activityID: id, trigger })]

export const make = Effect.fnUntraced(function* (eligibility: Eligibility.Eligibility, fenced: FencedAppend) {
  const store = yield* SessionStore
  const identifiers = yield* Identifiers

  /** Returns false when no input is left to open the activity, because it was withdrawn. */
  return Effect.fnUntraced(function* (
    owned: Activity.Owned,
    session: Session,
    state: Ref.Ref<Activity.Activity>,
    mode: Eligibility.Trigger
  ) {
    const activity = yield* Ref.get(state)
    const { started, trigger } = activity
    for (;;) {
      const inputs = yield* eligibility.eligible(owned.sessionID, mode)
      if (!started && trigger !== "resume" && inputs.length === 0) return false
      const [{ admittedSeq } = { admittedSeq: undefined }] = inputs
      const before =
        started || !mayContinue(session, trigger)
          ? activity
          : yield* store.continued(owned.sessionID, { trigger, admittedSeq })
      const drafts: ReadonlyArray<Draft> = [
        ...opening(activity),
        ...inputs.map(Eligibility.promotion),
        ...(yield* Effect.forEach(remindersFor(activity, inputs), (text) => reminder(identifiers, text)))
      ]
      if (!Arr.isNonEmptyReadonlyArray(drafts)) return true
      const isStored = yield* fenced.append(owned, drafts).pipe(
        Effect.zipRight(Ref.set(state, Activity.withInputs(activity, before, inputs))),
        Effect.as(true),
        // An input was withdrawn between the read and the append, and nothing was stored: select again (IB-41).
        Effect.catchTag("EventRefused", (refused) =>
          Effect.flatMap(eligibility.withdrawn(inputs), (any) => (any ? Effect.succeed(false) : refused))
        ),
        Effect.uninterruptible
      )
      if (isStored) return true
    }
  })
})

export type Promote = Effect.Effect.Success<ReturnType<typeof make>>
