/** Defines who answers permission questions: a terminal, a chat, or nobody. Spec: PM-4, PM-20, PM-21, TO-4, TO-5. */
import { Context, Data, Effect, Layer } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import type { Location } from "@daybook/log/domain/Values"
import type { PermissionSubject } from "./PermissionSubject.ts"

/** A question to a person, as data. The asker must show all of it, escaped. */
export interface PermissionRequest {
  readonly sessionID: SessionID
  /** The session's title; absent if it has none or it cannot be read. */
  readonly sessionTitle?: string
  readonly callID: string
  readonly tool: string
  readonly agent: string
  readonly location: Location
  readonly permission: string
  /** What it acts on; one answer decides about all resources. */
  readonly resources: NonEmptyReadonlyArray<string>
  /** The action in a line; `subject` describes it completely. */
  readonly title: string
  readonly subject: PermissionSubject
  /** Why it is asked although a rule allows it, and other remarks. */
  readonly notes: ReadonlyArray<string>
  /** The resource patterns that `Always` saves for this project. Empty: nothing can be saved. */
  readonly always: ReadonlyArray<string>
}

/**
 * `Once`, `Session`, `Always` and `AlwaysFor` allow the call. `Session` keeps the request's patterns for the session,
 * `Always` saves them for the project, `AlwaysFor` saves other patterns instead. `Decline` stops the whole run.
 * `Correct` refuses with a message for the model, and the run continues. `Unavailable`: nobody can answer, so the call
 * is refused. `Expired`: people were asked, and nobody answered within `waited` milliseconds, so the call is refused.
 */
export type Answer = Data.TaggedEnum<{
  Once: {}
  Session: {}
  Always: {}
  AlwaysFor: { readonly resources: ReadonlyArray<string> }
  Decline: {}
  Correct: { readonly message: string }
  Unavailable: {}
  Expired: { readonly waited: number }
}>
/** Makes and matches answers: `Answer.Once()`, `Answer.Correct({ message })`. */
export const Answer = Data.taggedEnum<Answer>()

/** What `PermissionAsker` offers. */
export interface Service {
  /** Waits for the answer. Interruption withdraws the question. One question at a time per session. */
  readonly ask: (request: PermissionRequest) => Effect.Effect<Answer>
}

/**
 * Answers permission questions, for a person; see `Options.permissionAsker`.
 *
 * @example
 * ```ts
 * import { PermissionAsker } from "@daybook/core"
 * import { Effect, Layer } from "effect"
 *
 * // Allows each call once, and prints its title.
 * export const printing = Layer.succeed(PermissionAsker.PermissionAsker, {
 *   ask: ({ title }) => Effect.as(Effect.log(title), PermissionAsker.Answer.Once())
 * })
 * ```
 */
export class PermissionAsker extends Context.Tag("@daybook/core/PermissionAsker")<PermissionAsker, Service>() {}

/** Answers every question with `Unavailable`: nobody is present. */
export const layerHeadless: Layer.Layer<PermissionAsker> = Layer.succeed(PermissionAsker, {
  ask: () => Effect.succeed(Answer.Unavailable())
})
