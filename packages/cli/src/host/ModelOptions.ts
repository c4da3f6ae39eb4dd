/** The models of the environment and of the person's configuration. Spec: MD-725 in specs/models.md. */
import { Effect, Layer } from "effect"
import { ModelResolver } from "@daybook/core/model/ModelResolver"
import { Models } from "@daybook/models"
import * as Configuration from "../config/Configuration.ts"

/** The providers and the default model. */
export const options = Effect.flatMap(Configuration.load, ({ providers = {} }) => Models.fromConfiguration(providers))

/** The resolver of these models. */
export const layer = Layer.effect(ModelResolver, Effect.flatMap(options, Models.make))
