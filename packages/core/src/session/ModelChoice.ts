/** Checks which model a session may be given: one that the host can use now. Spec: IB-3. */
import { Effect } from "effect"
import { InvalidInput } from "@daybook/log/domain/InvalidInput"
import { validate } from "@daybook/log/domain/Validate"
import { ModelRef } from "@daybook/log/domain/Values"
import type { ModelResolver } from "../model/ModelResolver.ts"

/** The model, if it resolves. */
export const knownModel = Effect.fnUntraced(function* ({ resolve }: ModelResolver["Type"], asked: ModelRef) {
  const model = yield* validate("model", ModelRef, asked)
  yield* Effect.mapError(resolve(model), ({ message }) => new InvalidInput({ field: "model", details: message }))
  return model
})
