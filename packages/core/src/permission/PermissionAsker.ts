/** Who answers when a rule says `ask`: a terminal, a chat, or nobody. Spec: PM-4, PM-20, PM-21, TO-4, TO-5. */
import { Context, Data, Effect, Layer } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import type { SessionID } from "../Identifiers.ts"
import type { Location } from "../session/Schemas.ts"
import type { PermissionSubject } from "./PermissionSubject.ts"

/** What a person is asked: data, which whoever asks shows whole and safely. */
export interface PermissionRequest {
  readonly sessionID: SessionID
  /** The session's title, where it has one and could be read. */
  readonly sessionTitle?: string
  readonly callID: string
  /** The tool's name. */
  readonly tool: string
  /** The agent's name. */
  readonly agent: string
  readonly location: Location
  /** The action's name: `edit`, `bash`, `external_directory` and so on. */
  readonly permission: string
  /** What it acts on; one answer decides for all of them. */
  readonly resources: NonEmptyReadonlyArray<string>
  /** What would be done, in a line; `subject` has all of it. */
  readonly title: string
  readonly subject: PermissionSubject
  /** Why it is asked although a rule allows it, and whatever else is to be known. */
  readonly notes: ReadonlyArray<string>
  /** The resource patterns that an `Always` saves for this project. Empty: there is nothing to save. */
  readonly always: ReadonlyArray<string>
}

/**
 * `Once`, `Session`, `Always` and `AlwaysFor` allow the call. `Session` keeps the request's patterns for the session,
 * `Always` saves them for the project, `AlwaysFor` saves others in their place. `Decline` stops the whole run; `Correct`
 * refuses with words for the model, which goes on; `Unavailable`: nobody is there, so it is refused.
 */
export type Answer = Data.TaggedEnum<{
  Once: {}
  Session: {}
  Always: {}
  AlwaysFor: { readonly resources: ReadonlyArray<string> }
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
