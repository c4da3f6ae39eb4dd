/** What a session can be given: models, agents, templates. Spec: HT-504 in specs/http.md. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as OpenApi from "@effect/platform/OpenApi"
import { Schema } from "effect"
import { AgentMode, BashMode } from "@daybook/core/domain/Agent"
import { InvalidInput } from "@daybook/log/domain/InvalidInput"
import { ModelRef, Price } from "@daybook/log/domain/Values"
import { NotServed, Reading } from "../wire/Access.ts"
import { failures } from "../wire/Failure.ts"
import { strict } from "./Shared.ts"

const optional = <S extends Schema.Schema.All>(schema: S) => Schema.optionalWith(schema, { exact: true })

/** A model that sessions can be given. */
export const OfferedModel = Schema.Struct({
  model: ModelRef,
  name: Schema.String,
  contextTokens: optional(Schema.Int),
  outputTokens: optional(Schema.Int),
  price: optional(Price),
  media: optional(Schema.Array(Schema.Literal("image", "pdf"))),
  thinks: optional(Schema.Boolean),
  variants: optional(Schema.Array(Schema.String)),
  source: Schema.Literal("catalogue", "configuration", "server", "built in"),
  needs: optional(Schema.String),
  default: Schema.Boolean
}).annotations({ identifier: "OfferedModel" })
export type OfferedModel = typeof OfferedModel.Type

/** The models, and the providers that did not list theirs. */
export const OfferedModels = Schema.Struct({
  models: Schema.Array(OfferedModel),
  unreachable: Schema.Array(Schema.Struct({ provider: Schema.String, why: Schema.String }))
})
export type OfferedModels = typeof OfferedModels.Type

/** An agent, without its prompt. */
export const OfferedAgent = Schema.Struct({
  name: Schema.String,
  description: optional(Schema.String),
  mode: AgentMode,
  model: optional(ModelRef),
  bash: BashMode
}).annotations({ identifier: "OfferedAgent" })
export type OfferedAgent = typeof OfferedAgent.Type

/** A template: a prompt with a name, which begins with `/`. */
export const OfferedTemplate = Schema.Struct({
  name: Schema.String,
  description: optional(Schema.String)
}).annotations({ identifier: "OfferedTemplate" })
export type OfferedTemplate = typeof OfferedTemplate.Type

/** With the folder's own. */
const inFolder = strict(Schema.Struct({ directory: Schema.optional(Schema.NonEmptyString) }))

/** Models, agents and templates. */
export const ChoicesApi = HttpApiGroup.make("choices")
  .annotate(OpenApi.Description, "What sessions can be given: models, agents, templates.")
  .add(
    HttpApiEndpoint.get("models", "/models").addSuccess(OfferedModels).addError(failures(NotServed)).middleware(Reading)
  )
  .add(
    HttpApiEndpoint.get("agents", "/agents")
      .setUrlParams(inFolder)
      .addSuccess(Schema.Array(OfferedAgent))
      .addError(failures(InvalidInput))
      .middleware(Reading)
  )
  .add(
    HttpApiEndpoint.get("templates", "/templates")
      .setUrlParams(inFolder)
      .addSuccess(Schema.Array(OfferedTemplate))
      .addError(failures(InvalidInput))
      .middleware(Reading)
  )
