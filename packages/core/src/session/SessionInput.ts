/**
 * Admission: a prompt becomes a durable input, once. Exact retries get the same receipt; anything else under a used id
 * is a conflict. Whoever loses a race reads what the winner wrote. Spec: specs/inbox.md IB-20..IB-31 (IN-1..IN-12).
 */
import { SqlClient } from "@effect/sql"
import { Context, Effect, Either, Layer, Metric } from "effect"
import { draft } from "../events/SessionEvents.ts"
import { Identifiers, MessageID, SessionID } from "../Identifiers.ts"
import { EventLog } from "../log/EventLog.ts"
import { unavailable } from "../log/EventRow.ts"
import { sameJson } from "../log/Replay.ts"
import * as Metrics from "../Metrics.ts"
import type { Input } from "./Message.ts"
import { PromptExpander } from "../prompt/PromptExpander.ts"
import { HostRequests } from "../request/HostRequests.ts"
import { checkOf } from "../request/StructuredOutput.ts"
import { checkBounds, checkSaid } from "./PromptBounds.ts"
import { Delivery, PromptInput, type Prompt } from "./Schemas.ts"
import { InboxFullError, InvalidInput, PromptConflictError, type PromptOptions, type Sessions } from "./Sessions.ts"
import { SessionStore } from "./SessionStore.ts"
import { validate } from "./Validate.ts"

type AdmitError = Effect.Effect.Error<ReturnType<Context.Tag.Service<typeof Sessions>["prompt"]>>

export class SessionInput extends Context.Tag("@daybook/core/SessionInput")<
  SessionInput,
  {
    /** Admits the prompt, or returns the receipt of its exact earlier admission. Wakes nobody. */
    readonly admit: (options: PromptOptions) => Effect.Effect<Input, AdmitError>
  }
>() {}

export interface InputOptions {
  /** Inputs that may wait in one session. */
  readonly inboxLimit: number
}

/** What was asked is compared, not what it came to: a file may have changed between two tries. */
const equivalent = (input: Input, sessionID: SessionID, prompt: PromptInput, delivery: Delivery): boolean => {
  const { expansion: _, ...asked } = input.prompt
  return (
    input.sessionID === sessionID &&
    input.delivery === delivery &&
    sameJson(asked, prompt) &&
    // Of two patterns that match, the later decides: their order is part of what was asked.
    sameJson(Object.keys(asked.tools ?? {}), Object.keys(prompt.tools ?? {}))
  )
}

const make = Effect.fnUntraced(function* ({ inboxLimit }: InputOptions) {
  const sql = yield* SqlClient.SqlClient
  const log = yield* EventLog
  const store = yield* SessionStore
  const identifiers = yield* Identifiers
  const expander = yield* PromptExpander
  const hooks = yield* HostRequests

  /** Before anything is written: those that a full inbox refuses do not reach the writer that all sessions share. */
  const checkFull = (sessionID: SessionID) =>
    Effect.filterOrFail(
      store.waitingCount(sessionID),
      (depth) => depth < inboxLimit,
      () => new InboxFullError({ sessionID, limit: inboxLimit })
    )

  /** In the admission's own transaction: two admissions at once cannot both take the last place (IN-12). */
  const checkRoom = (sessionID: SessionID) =>
    sql<{ readonly total: number }>`SELECT count(*) AS total FROM session_input
      WHERE session_id = ${sessionID} AND promoted_seq IS NULL`.pipe(
      Effect.mapError(unavailable("count the inbox")),
      Effect.flatMap(([row]) => {
        const depth = row?.total ?? 0
        return depth > inboxLimit
          ? Effect.fail(new InboxFullError({ sessionID, limit: inboxLimit }))
          : Metric.set(Metrics.inboxDepth, depth)
      })
    )

  const receipt = Effect.fnUntraced(function* (
    messageID: MessageID,
    sessionID: SessionID,
    prompt: PromptInput,
    delivery: Delivery
  ) {
    const existing = yield* store.input(messageID)
    if (existing !== undefined) {
      return equivalent(existing, sessionID, prompt, delivery)
        ? existing
        : yield* new PromptConflictError({ sessionID, messageID })
    }
    return (yield* store.hasMessage(messageID)) ? yield* new PromptConflictError({ sessionID, messageID }) : undefined
  })

  const admit = Effect.fn("SessionInput.admit")(function* (options: PromptOptions) {
    const delivery = yield* validate("delivery", Delivery, options.delivery ?? "steer")
    const sessionID = yield* validate("sessionID", SessionID, options.sessionID)
    const asked = yield* validate("prompt", PromptInput, options.prompt)
    yield* checkBounds(asked)
    const messageID =
      options.id === undefined ? yield* identifiers.message : yield* validate("id", MessageID, options.id)
    const session = yield* store.get(sessionID)
    const before = options.id === undefined ? undefined : yield* receipt(messageID, sessionID, asked, delivery)
    if (before !== undefined) return before
    yield* checkSaid(asked)
    yield* checkFull(sessionID)
    if (asked.output !== undefined) {
      yield* Either.mapLeft(
        checkOf(asked.output),
        (details) => new InvalidInput({ field: "prompt.output.schema", details })
      )
    }
    const pointedAt = options.expand === false ? undefined : yield* expander.expand(session, asked)
    const expansion = yield* hooks.onPrompt(session, asked, pointedAt)
    const prompt: Prompt = expansion === undefined ? asked : { ...asked, expansion }
    const admitted = draft("session.next.prompt.admitted", { messageID, prompt, delivery })
    const input = Effect.map(
      log.append(sessionID, [admitted], { commit: () => checkRoom(sessionID) }),
      ([event]): Input => ({
        id: messageID,
        sessionID,
        prompt,
        delivery,
        admittedSeq: event.seq,
        createdAt: event.created
      })
    )
    return yield* Effect.catchTag(input, "EventRefused", (refused) =>
      // Another caller admitted the id between the look and the write: that admission counts.
      Effect.flatMap(receipt(messageID, sessionID, asked, delivery), (theirs) =>
        theirs === undefined ? Effect.fail(refused) : Effect.succeed(theirs)
      )
    )
  }, Effect.uninterruptible)

  return SessionInput.of({ admit })
})

/** Admission into the event log. */
export const layer = (options: InputOptions) => Layer.effect(SessionInput, make(options))
