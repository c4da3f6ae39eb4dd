/**
 * Promotes waiting inputs into an activity: one append holds the activity's start, the promotions and the reminders for
 * the model. The append may wait for the start of the turn's step, and is one with it then.
 * Spec: EX-D3, EX-D4, EX-113 (TU-3, PR-2..PR-6), RQ-24, IB-41.
 */
import { Array as Arr, Effect, Ref } from "effect"
import { Identifiers, type MessageID } from "@daybook/log/domain/Identifiers"
import type { Input, Message, Session } from "@daybook/log/domain/Message"
import { type Draft, draft } from "@daybook/log/events/SessionEvents"
import type { AppendError } from "@daybook/log/log/EventLog"
import type { LocationLeft } from "@daybook/log/store/SessionChecks"
import { SessionStore } from "@daybook/log/store/SessionStore"
import type { StoreError } from "@daybook/log/store/StoreError"
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

/** Inputs that were selected for an activity. Their promotions are not in the log yet. */
export interface Selection {
  /** The activity as it is once they are. */
  readonly activity: Activity.Activity
  /** Whether their append may wait for the start of the step. Reminders are read from the log. */
  readonly mayWait: boolean
  /** The messages that the inputs become, after the last one of the history. */
  readonly messagesAfter: (last: number) => ReadonlyArray<Message>
  /** Gives these messages the sequence numbers that `store` gave them. */
  readonly placed: (messages: ReadonlyArray<Message>) => ReadonlyArray<Message>
  /** Stores the promotions, then these events, in one append. False, and nothing is stored: an input was withdrawn. */
  readonly store: (rest: ReadonlyArray<Draft>) => Effect.Effect<boolean, AppendError | LocationLeft | StoreError>
}

/** The messages that the inputs become, with sequence numbers that follow `last`. */
export const messagesOf = (inputs: ReadonlyArray<Input>, last: number): ReadonlyArray<Message> =>
  inputs.map(({ createdAt, id, prompt }, index) => ({ type: "user", id, seq: last + 1 + index, createdAt, ...prompt }))

export const make = Effect.fnUntraced(function* (eligibility: Eligibility.Eligibility, fenced: FencedAppend) {
  const store = yield* SessionStore
  const identifiers = yield* Identifiers

  /** Returns undefined when no input is left to open the activity, because it was withdrawn. */
  return Effect.fnUntraced(function* (
    owned: Activity.Owned,
    session: Session,
    state: Ref.Ref<Activity.Activity>,
    mode: Eligibility.Trigger
  ) {
    const activity = yield* Ref.get(state)
    const { started, trigger } = activity
    const inputs = yield* eligibility.eligible(owned.sessionID, mode)
    if (!started && trigger !== "resume" && inputs.length === 0) return undefined
    const [{ admittedSeq } = { admittedSeq: undefined }] = inputs
    const before =
      started || !mayContinue(session, trigger)
        ? activity
        : yield* store.continued(owned.sessionID, { trigger, admittedSeq })
    const reminders = yield* Effect.forEach(remindersFor(activity, inputs), (text) => reminder(identifiers, text))
    const drafts = [...opening(activity), ...inputs.map(Eligibility.promotion), ...reminders]
    const after = drafts.length === 0 ? activity : Activity.withInputs(activity, before, inputs)
    const seqs = new Map<MessageID, number>()
    const selection: Selection = {
      activity: after,
      mayWait: reminders.length === 0,
      messagesAfter: (last) => messagesOf(inputs, last),
      placed: (messages) => messages.map((message) => ({ ...message, seq: seqs.get(message.id) ?? message.seq })),
      store: (rest) => {
        const all = [...drafts, ...rest]
        if (!Arr.isNonEmptyReadonlyArray(all)) return Effect.succeed(true)
        return fenced.append(owned, all).pipe(
          Effect.flatMap((events) => {
            for (const { data, seq, type } of events) {
              if (type === "session.next.prompt.promoted") seqs.set(data.messageID, seq)
            }
            return Effect.as(Ref.set(state, after), true)
          }),
          // An input was withdrawn between the read and the append, and nothing was stored (IB-41).
          Effect.catchTag("EventRefused", (refused) =>
            Effect.flatMap(eligibility.withdrawn(inputs), (any) => (any ? Effect.succeed(false) : refused))
          ),
          Effect.uninterruptible
        )
      }
    }
    return selection
  })
})

export type Select = Effect.Effect.Success<ReturnType<typeof make>>
