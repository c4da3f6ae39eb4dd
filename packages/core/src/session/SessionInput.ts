/**
 * Admits prompts: a prompt becomes a durable input exactly once. An exact retry gets the same receipt; any other use of
 * its id is a conflict. The loser of a race reads what the winner wrote. Spec: IB-20..IB-31 in specs/sessions.md
 * (IN-1..IN-12).
 */
import { Context, Effect, Either, Layer } from "effect"
import { Identifiers, MessageID, SessionID } from "@daybook/log/domain/Identifiers"
import { unfinished } from "@daybook/log/domain/Imported"
import { InboxFullError } from "@daybook/log/domain/InboxError"
import { InvalidInput, validate } from "@daybook/log/domain/InvalidInput"
import type { Input } from "@daybook/log/domain/Message"
import { Delivery, PromptInput } from "@daybook/log/domain/Values"
import { type Admission, Inbox, type Prospect } from "@daybook/log/store/Inbox"
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

type AdmissionRequest = Omit<Admission, "prompt" | "messageID"> & {
  readonly prompt: PromptInput
  readonly messageID: MessageID | undefined
}

/** Checks the arguments in the order in which they are reported. */
const check = ({
  delivery = "steer",
  id,
  prompt,
  sessionID
}: PromptOptions): Either.Either<AdmissionRequest, InvalidInput> =>
  Either.gen(function* () {
    const asked = {
      delivery: yield* validate("delivery", Delivery, delivery),
      sessionID: yield* validate("sessionID", SessionID, sessionID),
      prompt: yield* validate("prompt", PromptInput, prompt)
    }
    yield* checkBounds(asked.prompt)
    return { ...asked, messageID: id === undefined ? undefined : yield* validate("id", MessageID, id) }
  })

/** Why a prompt is not admitted; undefined if it may be. */
const refusalOf = ({ prompt, sessionID }: Admission, { imported, waiting }: Prospect, limit: number) => {
  const stopped = unfinished(sessionID, imported)
  if (stopped !== undefined) return stopped
  const said = checkSaid(prompt)
  if (Either.isLeft(said)) return said.left
  // Checked before writing too, so that prompts refused by a full inbox do not reach the shared writer.
  if (waiting >= limit) return new InboxFullError({ sessionID, limit })
  const output = prompt.output === undefined ? undefined : checkOf(prompt.output)
  return output !== undefined && Either.isLeft(output)
    ? new InvalidInput({ field: "prompt.output.schema", details: output.left })
    : undefined
}

// Plain code between few effects: a step of an effect costs more than a check.
const make = Effect.fnUntraced(function* ({ inboxLimit }: InputOptions) {
  const inbox = yield* Inbox
  const store = yield* SessionStore
  const identifiers = yield* Identifiers
  const expander = yield* PromptExpander
  const hooks = yield* HostRequests

  const expand = Effect.fnUntraced(function* (asked: Admission, refers: boolean) {
    const { prompt, sessionID } = asked
    const session = yield* store.get(sessionID)
    const read = refers ? yield* expander.expand(session, prompt) : undefined
    const expansion = yield* hooks.onPrompt(session, prompt, read)
    return expansion === undefined ? asked : { ...asked, prompt: { ...prompt, expansion } }
  })

  const write = (admission: Admission) => inbox.admit(admission, { limit: inboxLimit })

  /** Admits under an unused id. The session is read only if the prompt refers to something. */
  const fresh = (asked: Admission, prospect: Prospect, mayExpand: boolean): Effect.Effect<Input, AdmitError> => {
    const refusal = refusalOf(asked, prospect, inboxLimit)
    if (refusal !== undefined) return Effect.fail(refusal)
    const refers = mayExpand && mayRefer(asked.prompt)
    return refers || hooks.readsPrompts() ? Effect.flatMap(expand(asked, refers), write) : write(asked)
  }

  const decide = (asked: Admission, mayExpand: boolean): Effect.Effect<Input, AdmitError> =>
    Effect.flatMap(inbox.prospect(asked.sessionID, asked.messageID), (prospect) =>
      prospect.taken
        ? Effect.flatMap(inbox.receipt(asked), (before) =>
            before === undefined ? fresh(asked, prospect, mayExpand) : Effect.succeed(before)
          )
        : fresh(asked, prospect, mayExpand)
    )

  const admit = (options: PromptOptions): Effect.Effect<Input, AdmitError> => {
    const checked = check(options)
    if (Either.isLeft(checked)) return Effect.fail(checked.left)
    const { messageID, ...asked } = checked.right
    const { expand: mayExpand = true } = options
    return messageID === undefined
      ? Effect.flatMap(identifiers.message, (generated) => decide({ ...asked, messageID: generated }, mayExpand))
      : decide({ ...asked, messageID }, mayExpand)
  }

  return SessionInput.of({
    admit: (options) =>
      Effect.uninterruptible(Effect.suspend(() => admit(options))).pipe(withSpan("SessionInput.admit"))
  })
})

/** Admits prompts into the event log. */
export const layer = (options: InputOptions) => Layer.effect(SessionInput, make(options))
