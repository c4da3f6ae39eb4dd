/**
 * Admits prompts: a prompt becomes a durable input exactly once. An exact retry gets the same receipt; any other use of
 * its id is a conflict. The loser of a race reads what the winner wrote. Spec: specs/inbox.md IB-20..IB-31
 * (IN-1..IN-12).
 */
import { Context, Effect, Either, Layer } from "effect"
import { Identifiers, MessageID, SessionID } from "@daybook/log/domain/Identifiers"
import { unfinished } from "@daybook/log/domain/Imported"
import { InboxFullError } from "@daybook/log/domain/InboxError"
import { InvalidInput } from "@daybook/log/domain/InvalidInput"
import type { Input } from "@daybook/log/domain/Message"
import { validate } from "@daybook/log/domain/Validate"
import { Delivery, type Prompt, PromptInput } from "@daybook/log/domain/Values"
import { Inbox } from "@daybook/log/store/Inbox"
import { SessionStore, type Standing } from "@daybook/log/store/SessionStore"
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

const make = Effect.fnUntraced(function* ({ inboxLimit }: InputOptions) {
  const inbox = yield* Inbox
  const store = yield* SessionStore
  const identifiers = yield* Identifiers
  const expander = yield* PromptExpander
  const hooks = yield* HostRequests

  /** Checked before writing too, so that prompts refused by a full inbox do not reach the shared writer. */
  const checkFull = ({ queued, session, steers }: Standing) =>
    queued + steers < inboxLimit
      ? Effect.void
      : Effect.fail(new InboxFullError({ sessionID: session.id, limit: inboxLimit }))

  const admit = Effect.fn("SessionInput.admit")(function* (options: PromptOptions) {
    const delivery = yield* validate("delivery", Delivery, options.delivery ?? "steer")
    const sessionID = yield* validate("sessionID", SessionID, options.sessionID)
    const asked = yield* validate("prompt", PromptInput, options.prompt)
    yield* checkBounds(asked)
    const messageID =
      options.id === undefined ? yield* identifiers.message : yield* validate("id", MessageID, options.id)
    const standing = yield* store.standing(sessionID)
    const { session } = standing
    const before =
      options.id === undefined ? undefined : yield* inbox.receipt({ sessionID, messageID, prompt: asked, delivery })
    if (before !== undefined) return before
    const stopped = unfinished(session.id, session.imported)
    if (stopped !== undefined) return yield* stopped
    yield* checkSaid(asked)
    yield* checkFull(standing)
    if (asked.output !== undefined) {
      yield* Either.mapLeft(
        checkOf(asked.output),
        (details) => new InvalidInput({ field: "prompt.output.schema", details })
      )
    }
    const pointedAt = options.expand === false ? undefined : yield* expander.expand(session, asked)
    const expansion = yield* hooks.onPrompt(session, asked, pointedAt)
    const prompt: Prompt = expansion === undefined ? asked : { ...asked, expansion }
    return yield* inbox.admit({ sessionID, messageID, prompt, delivery }, { limit: inboxLimit })
  }, Effect.uninterruptible)

  return SessionInput.of({ admit })
})

/** Admits prompts into the event log. */
export const layer = (options: InputOptions) => Layer.effect(SessionInput, make(options))
