/** Reads everything that the store shows of one session, as JSON, to compare two builds or two states of a database. */
import { Effect } from "effect"
import { shownAt } from "../../packages/core/src/request/Recorded.ts"
import type { MessageID, SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { EpochStore } from "../../packages/log/src/store/EpochStore.ts"
import { Inbox } from "../../packages/log/src/store/Inbox.ts"
import { QuestionStore } from "../../packages/log/src/store/QuestionStore.ts"
import { SessionStore } from "../../packages/log/src/store/SessionStore.ts"
import { readAll } from "./Logs.ts"

const outcome = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<unknown, never, R> =>
  Effect.match(effect, { onFailure: (error) => ({ error }), onSuccess: (value) => value })

/** Every message of the session, page by page. */
const transcript = Effect.fnUntraced(function* (sessionID: SessionID) {
  const store = yield* SessionStore
  const items: Array<unknown> = []
  let cursor: number | undefined
  do {
    const page = yield* store.messages({ sessionID, limit: 7, cursor, branch: "all" })
    items.push(...page.items)
    cursor = page.cursor
  } while (cursor !== undefined)
  return items
})

/** The ids of the inputs that the session admitted. */
export const inputIDs = (sessionID: SessionID) =>
  Effect.map(readAll(sessionID), (events) =>
    events.flatMap((event): ReadonlyArray<MessageID> =>
      event.type === "session.next.prompt.admitted" || event.type === "session.next.prompted"
        ? [event.data.messageID]
        : []
    )
  )

interface Above {
  /** Requests of steps after this sequence number. */
  readonly after: number
  readonly inputs: ReadonlyArray<MessageID>
}

/** What the store shows of a session: its messages, contexts, requests, inputs and open work. */
export const readModels = Effect.fnUntraced(function* (sessionID: SessionID, above?: Above) {
  const [log, store, inbox] = [yield* EventLog, yield* SessionStore, yield* Inbox]
  const events = yield* readAll(sessionID, above?.after)
  const ids = above?.inputs ?? (yield* inputIDs(sessionID))
  const steps = events.flatMap(({ seq, type }) => (type === "session.next.step.started" ? [seq] : []))
  const head = yield* log.latest(sessionID)
  const shown = {
    session: yield* store.get(sessionID),
    messages: yield* outcome(transcript(sessionID)),
    context: yield* outcome(store.context(sessionID, -1)),
    contextAfterBaseline: yield* outcome(store.context(sessionID, head >> 1)),
    requests: yield* Effect.forEach(steps, (at) => outcome(shownAt(sessionID, at))),
    steps: yield* Effect.forEach(steps, (at) =>
      outcome(Effect.map(store.stepAt(sessionID, at), (step) => step?.message))
    ),
    inputs: yield* outcome(Effect.forEach(ids, inbox.get)),
    waiting: yield* outcome(inbox.waiting(sessionID, { limit: 100 })),
    continued: yield* Effect.forEach(["resume", "queue"] as const, (trigger) =>
      outcome(store.continued(sessionID, { trigger, admittedSeq: undefined }))
    ),
    epoch: yield* outcome(Effect.flatMap(EpochStore, (epochs) => epochs.get(sessionID))),
    questions: yield* outcome(Effect.flatMap(QuestionStore, (questions) => questions.open(sessionID))),
    unsettled: yield* outcome(store.unsettledTools(sessionID)),
    openStep: yield* outcome(store.openStep(sessionID)),
    instructions: yield* outcome(store.instructionFiles(sessionID, 100)),
    todos: yield* outcome(store.todos(sessionID)),
    tree: yield* outcome(store.tree({ sessionID, limit: 500 }))
  }
  return JSON.parse(JSON.stringify(shown)) as Readonly<Record<keyof typeof shown, unknown>>
})
