/**
 * Tells which model answers, read for every turn: a switch is told as a change and keeps the baseline. The first
 * baseline does not wait for it, since an unresolved model fails the turn anyway.
 * Spec: specs/context.md CX-22 (EP-6).
 */
import { Effect, Schema } from "effect"
import { ModelRef } from "@daybook/log/domain/Values"
import { available, type ContextSource, source, unavailable } from "../SystemContext.ts"

const Identity = Schema.Struct({ ref: ModelRef, name: Schema.String })
type Identity = typeof Identity.Type

const nameOf = ({ name, ref: { id, providerID, variant } }: Identity) => {
  const reference = variant === undefined ? `${providerID}/${id}` : `${providerID}/${id}, ${variant}`
  return name === "" || name === `${providerID}/${id}` ? reference : `${name} (${reference})`
}

export const modelIdentity: ContextSource = source({
  key: "daybook/model",
  schema: Identity,
  optional: true,
  load: ({ model }) =>
    Effect.succeed(model === undefined ? unavailable : available({ ref: model.ref, name: model.name })),
  baseline: (model) => `You answer as the model ${nameOf(model)}.`,
  update: (_, model) => `From here on you answer as the model ${nameOf(model)}; earlier answers were another model's.`
})
