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
import { SessionStore } from "@daybook/log/store/SessionStore"
import { withSpan } from "@daybook/log/support/Spans"
import { mayRefer, PromptExpander } from "../prompt/PromptExpander.ts"
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

  /** The expansion of a prompt. The session is read only if the prompt refers to something. */
  const expansionOf = Effect.fnUntraced(function* ({ expand = true, sessionID }: PromptOptions, asked: PromptInput) {
    const refers = expand && mayRefer(asked)
    if (!refers && !hooks.readsPrompts()) return undefined
    const session = yield* store.get(sessionID)
    return yield* hooks.onPrompt(session, asked, refers ? yield* expander.expand(session, asked) : undefined)
  })

  const admit = Effect.fnUntraced(function* (options: PromptOptions) {
    const delivery = yield* validate("delivery", Delivery, options.delivery ?? "steer")
    const sessionID = yield* validate("sessionID", SessionID, options.sessionID)
    const asked = yield* validate("prompt", PromptInput, options.prompt)
    yield* checkBounds(asked)
    const messageID =
      options.id === undefined ? yield* identifiers.message : yield* validate("id", MessageID, options.id)
    const { imported, taken, waiting } = yield* inbox.prospect(sessionID, messageID)
    const before = taken ? yield* inbox.receipt({ sessionID, messageID, prompt: asked, delivery }) : undefined
    if (before !== undefined) return before
    const stopped = unfinished(sessionID, imported)
    if (stopped !== undefined) return yield* stopped
    yield* checkSaid(asked)
    // Checked before writing too, so that prompts refused by a full inbox do not reach the shared writer.
    if (waiting >= inboxLimit) return yield* new InboxFullError({ sessionID, limit: inboxLimit })
    if (asked.output !== undefined) {
      yield* Either.mapLeft(
        checkOf(asked.output),
        (details) => new InvalidInput({ field: "prompt.output.schema", details })
      )
    }
    const expansion = yield* expansionOf(options, asked)
    const prompt: Prompt = expansion === undefined ? asked : { ...asked, expansion }
    return yield* inbox.admit({ sessionID, messageID, prompt, delivery }, { limit: inboxLimit })
  })

  return SessionInput.of({
    admit: (options) => Effect.uninterruptible(admit(options)).pipe(withSpan("SessionInput.admit"))
  })
})

/** Admits prompts into the event log. */
export const layer = (options: InputOptions) => Layer.effect(SessionInput, make(options))
