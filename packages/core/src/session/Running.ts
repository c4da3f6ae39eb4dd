/** Runs sessions: admits prompts, starts and stops work. Spec: IN-1..IN-12, EX-E1..EX-E10, CP-41, TU-13. */
import { Effect } from "effect"
import { SessionOwner } from "@daybook/log/coordination/SessionOwner"
import { type ActivityID, Identifiers, isSessionID, type SessionID } from "@daybook/log/domain/Identifiers"
import { unfinished } from "@daybook/log/domain/Imported"
import type { Session } from "@daybook/log/domain/Message"
import { draft } from "@daybook/log/events/SessionEvents"
import { EventLog, SessionNotFound } from "@daybook/log/log/EventLog"
import { Inbox } from "@daybook/log/store/Inbox"
import { SessionStore } from "@daybook/log/store/SessionStore"
import type { StoreError } from "@daybook/log/store/StoreError"
import { withSpan } from "@daybook/log/support/Spans"
import { AdmissionGate } from "../coordination/AdmissionGate.ts"
import { Snapshots } from "../snapshot/Snapshots.ts"
import { uncontested } from "../support/Contested.ts"
import { ToolOutputStore } from "../workspace/ToolOutputStore.ts"
import * as Ask from "./Ask.ts"
import type { Existing } from "./Placement.ts"
import { SessionExecution } from "./SessionExecution.ts"
import { SessionInput } from "./SessionInput.ts"
import type { Sessions } from "./Sessions.ts"

export const make = Effect.fnUntraced(function* ({ changes, unlessRemoved }: Existing) {
  const log = yield* EventLog
  const store = yield* SessionStore
  const inbox = yield* Inbox
  const inputs = yield* SessionInput
  const execution = yield* SessionExecution
  const owners = yield* SessionOwner
  const identifiers = yield* Identifiers
  const gate = yield* AdmissionGate
  const outputs = yield* ToolOutputStore
  const snapshots = yield* Snapshots

  const admit: Sessions["Type"]["prompt"] = (options) => {
    const { resume = true, sessionID } = options
    const admitted = inputs.admit(options)
    // An invalid id is the caller's mistake; admission's error names the field.
    const input = isSessionID(sessionID) ? unlessRemoved(sessionID, admitted) : admitted
    return Effect.uninterruptible(resume ? Effect.zipLeft(input, execution.wake(sessionID)) : input)
  }
  const prompt: Sessions["Type"]["prompt"] = (options) =>
    Effect.zipRight(gate.enter, withSpan("Sessions.prompt")(admit(options)))

  /** Requests a compaction. Returns the id of the request, or of the request that already waits. */
  const requestCompaction = Effect.fnUntraced(function* (sessionID: SessionID) {
    const expectedSeq = yield* log.latest(sessionID)
    const { compaction } = yield* store.get(sessionID)
    const waiting = compaction?.state === "requested" ? compaction.id : compaction?.next
    if (waiting !== undefined) return waiting
    const messageID = yield* identifiers.message
    yield* log.append(sessionID, [draft("session.next.compaction.requested", { messageID })], { expectedSeq })
    return messageID
  })

  const compact = Effect.fn("Sessions.compact")(function* (sessionID: SessionID) {
    // If an append came in between, the next attempt reads again: it may have been the same request.
    const messageID = yield* uncontested(requestCompaction(sessionID))
    yield* execution.wake(sessionID)
    return messageID
  }, Effect.uninterruptible)

  /** The listed sessions without a living owner. */
  const abandoned = Effect.fnUntraced(function* (list: Effect.Effect<ReadonlyArray<Session>, StoreError>) {
    const before = new Map((yield* list).map((session) => [session.id, session.activity?.id]))
    const owned = yield* owners.owned([...before.keys()])
    // Checking owners takes time, so sessions whose activity changed meanwhile are skipped. An import goes on by itself.
    return (yield* list).filter(
      ({ activity, id, imported }) =>
        before.has(id) && before.get(id) === activity?.id && !owned.has(id) && unfinished(id, imported) === undefined
    )
  })

  /** What an import left open is settled by its next records, or at its end. */
  const settle = (sessionID: SessionID) =>
    Effect.catchTag(changes(execution.settle)(sessionID), "ImportUnfinished", () => Effect.succeed(false))

  const remove = Effect.fn("Sessions.remove")(function* (sessionID: SessionID) {
    yield* execution.interrupt(sessionID)
    // First: a kill in between leaves a session without snapshots, not snapshots without a session.
    yield* snapshots.forget(sessionID)
    if (!(yield* log.remove(sessionID))) return yield* new SessionNotFound({ sessionID })
    yield* outputs.forget(new Set([sessionID]))
  })

  return {
    prompt,
    ask: Ask.make({ log, store, owners, execution }, prompt),
    compact: changes(compact),
    settle,
    resume: (sessionID: SessionID) => unlessRemoved(sessionID, execution.resume(sessionID)),
    interrupt: (sessionID: SessionID, { activityID }: { readonly activityID?: ActivityID | undefined } = {}) =>
      execution.interrupt(sessionID, activityID),
    wait: (sessionID: SessionID) => Effect.zipRight(execution.settled(sessionID), store.get(sessionID)),
    active: execution.active,
    interrupted: abandoned(store.interrupted),
    waiting: abandoned(inbox.sessions),
    remove
  }
})
