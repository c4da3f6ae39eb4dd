/** Who answers when a rule says `ask`: a terminal, a chat, or nobody. Spec: PM-4, TO-4, TO-5. */
import { Context, Data, Effect, Layer } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import type { SessionID } from "../Identifiers.ts"
import type { Location } from "../session/Schemas.ts"

/** What a person is asked. */
export interface PermissionRequest {
  readonly sessionID: SessionID
  readonly callID: string
  /** The agent's name. */
  readonly agent: string
  readonly location: Location
  /** The action's name: `edit`, `bash`, `external_directory` and so on. */
  readonly permission: string
  /** What it acts on; one answer decides for all of them. */
  readonly resources: NonEmptyReadonlyArray<string>
  /** One line that says what will be done. */
  readonly title: string
  /** The resource patterns that an `Always` saves for this project. Empty: there is nothing to save. */
  readonly always: ReadonlyArray<string>
}

/**
 * `Once` and `Always` allow the call, and `Always` saves the request's patterns; `Decline` stops the whole run;
 * `Correct` refuses with words for the model, which goes on; `Unavailable`: nobody is there, so it is refused.
 */
export type Answer = Data.TaggedEnum<{
  Once: {}
  Always: {}
  Decline: {}
  Correct: { readonly message: string }
  Unavailable: {}
}>
/** Makes and matches answers: `Answer.Once()`, `Answer.Correct({ message })`. */
export const Answer = Data.taggedEnum<Answer>()

/** The person, or what stands for one, behind `Options.permissionAsker`. */
export class PermissionAsker extends Context.Tag("@daybook/core/PermissionAsker")<
  PermissionAsker,
  {
    /** Waits for the answer. Interruption withdraws the question. One question at a time per session. */
    readonly ask: (request: PermissionRequest) => Effect.Effect<Answer>
  }
>() {}

/** Nobody answers: whatever has to be asked is refused. */
export const layerHeadless: Layer.Layer<PermissionAsker> = Layer.succeed(PermissionAsker, {
  ask: () => Effect.succeed(Answer.Unavailable())
})
