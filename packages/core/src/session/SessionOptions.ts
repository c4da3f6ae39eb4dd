/**
 * Defines the arguments and results of the facade's verbs as schemas, so that servers and clients can be derived from
 * them. An id is any text here: the verb checks it and names the field at fault. Contract of the verbs: `Sessions.ts`.
 */
import { Schema } from "effect"
import { Address } from "@daybook/log/domain/Address"
import { SessionID } from "@daybook/log/domain/Identifiers"
import { Delivery, Location, ModelRef, PromptInput } from "@daybook/log/domain/Values"

/** A session's address for clients. */
export const Placement = Schema.Struct({
  address: Address,
  /** The folder that its agent sees as `/`: an absolute real path. */
  root: Schema.optional(Schema.String)
})
export type Placement = typeof Placement.Type

const creation = {
  location: Location,
  agent: Schema.optional(Schema.String),
  model: Schema.optional(ModelRef),
  parentID: Schema.optional(SessionID)
}

/** Options of a new session; only `location` is required. */
export const CreateOptions = Schema.Struct({
  id: Schema.optional(Schema.String),
  ...creation,
  title: Schema.optional(Schema.String),
  /**
   * If a session already has this address, `create` returns that session unchanged, unless another `id` is given
   * (AD-3).
   */
  placement: Schema.optional(Placement)
})
export type CreateOptions = typeof CreateOptions.Type

/** Options of `named`: those of a new session, with its title. */
export const NamedOptions = Schema.Struct({ ...creation, title: Schema.String })
export type NamedOptions = typeof NamedOptions.Type

/** A prompt for a session. With a caller-supplied id it can be sent again safely. */
export const PromptOptions = Schema.Struct({
  id: Schema.optional(Schema.String),
  sessionID: SessionID,
  prompt: PromptInput,
  /** Default: `steer`. */
  delivery: Schema.optional(Delivery),
  /** False admits only. By default the session is woken. */
  resume: Schema.optional(Schema.Boolean),
  /** False takes the text literally: mentions and templates are not expanded. Use it for text that no person wrote. */
  expand: Schema.optional(Schema.Boolean)
})
export type PromptOptions = typeof PromptOptions.Type
