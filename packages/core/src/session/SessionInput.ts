/**
 * Admits prompts: a prompt becomes a durable input exactly once. An exact retry gets the same receipt; any other use of
 * its id is a conflict. The loser of a race reads what the winner wrote. Spec: specs/inbox.md IB-20..IB-31
 * (IN-1..IN-12).
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Context, Effect, Either, Layer, Metric } from "effect"
import { Identifiers, MessageID, SessionID } from "@daybook/log/domain/Identifiers"
import { InboxFullError, PromptConflictError } from "@daybook/log/domain/InboxError"
import { InvalidInput } from "@daybook/log/domain/InvalidInput"
import type { Input } from "@daybook/log/domain/Message"
import { validate } from "@daybook/log/domain/Validate"
import { Delivery, type Prompt, PromptInput } from "@daybook/log/domain/Values"
import { draft } from "@daybook/log/events/SessionEvents"
import { EventLog } from "@daybook/log/log/EventLog"
import { sameJson } from "@daybook/log/log/Replay"
import * as SqlHook from "@daybook/log/log/SqlHook"
import { SessionStore } from "@daybook/log/store/SessionStore"
import * as Metrics from "@daybook/log/support/Metrics"
import { PromptExpander } from "../prompt/PromptExpander.ts"
import { HostRequests } from "../request/HostRequests.ts"
import { checkOf } from "../request/StructuredOutput.ts"
import { checkBounds, checkSaid } from "./PromptBounds.ts"
import type { PromptOptions } from "./SessionOptions.ts"
import type { Sessions } from "./Sessions.ts"

type AdmitError = Effect.Effect.Error<ReturnType<Context.Tag.Service<typeof Sessions>["prompt"]>>

/** Admits prompts into the inbox. */
export class SessionInput extends Context.Tag("@daybook/core/SessionInput")<
  SessionInput,
  {
    /** Admits the prompt, or returns the receipt of its exact earlier admission. Wakes nothing. */
    readonly admit: (options: PromptOptions) => Effect.Effect<Input, AdmitError>
  }
>() {}

export interface InputOptions {
  /** Maximum number of waiting inputs per session. */
  readonly inboxLimit: number
}

/** Compares the prompts, not their expansions: a file may change between two tries. */
const equivalent = (input: Input, sessionID: SessionID, prompt: PromptInput, delivery: Delivery): boolean => {
  const { expansion: _, ...asked } = input.prompt
  return (
    input.sessionID === sessionID &&
    input.delivery === delivery &&
    sameJson(asked, prompt) &&
    // The last matching pattern decides, so the order of patterns is part of the prompt.
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

  /** Checked before writing too, so that prompts refused by a full inbox do not reach the shared writer. */
  const checkFull = (sessionID: SessionID) =>
    Effect.filterOrFail(
      store.waitingCount(sessionID),
      (depth) => depth < inboxLimit,
      () => new InboxFullError({ sessionID, limit: inboxLimit })
    )

  /** Checked in the admission's transaction, so that concurrent admissions cannot both take the last place (IN-12). */
  const checkRoom = (sessionID: SessionID) =>
    sql<{ readonly total: number }>`SELECT count(*) AS total FROM session_input
      WHERE session_id = ${sessionID} AND promoted_seq IS NULL`.pipe(
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
      log.append(sessionID, [admitted], { commit: SqlHook.make(() => checkRoom(sessionID)) }),
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
      // Another caller admitted the id between the read and the write: return that admission.
      Effect.flatMap(receipt(messageID, sessionID, asked, delivery), (theirs) =>
        theirs === undefined ? Effect.fail(refused) : Effect.succeed(theirs)
      )
    )
  }, Effect.uninterruptible)

  return SessionInput.of({ admit })
})

/** Admits prompts into the event log. */
export const layer = (options: InputOptions) => Layer.effect(SessionInput, make(options))
