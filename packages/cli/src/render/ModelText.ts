/** Renders models as lines. Pure. Spec: CL-130 in specs/cli.md. */
import type { Price } from "@daybook/log/domain/Values"
import { columns, oneLine } from "./Plain.ts"

/** One model, and the setting that it needs. */
export interface ListedModel {
  readonly model: string
  readonly name: string
  readonly contextTokens?: number
  readonly outputTokens?: number
  readonly price?: Price
  readonly variants?: ReadonlyArray<string>
  readonly source: "catalogue" | "server" | "built in"
  /** The missing setting; absent if the model can be used now. */
  readonly needs?: string
  readonly default: boolean
}

const thousands = (tokens: number | undefined): string =>
  tokens === undefined || tokens === 0 ? "-" : `${Math.round(tokens / 1_000)}k`

const prices = (price: ListedModel["price"]): string => (price === undefined ? "-" : `$${price.input}/$${price.output}`)

/** Columns: name, window, price of a million input and output tokens, source, missing setting. */
export const modelTable = (models: ReadonlyArray<ListedModel>): string =>
  columns(
    models.map((model) => [
      oneLine(model.model, 120),
      thousands(model.contextTokens),
      prices(model.price),
      model.source,
      model.needs === undefined ? (model.default ? "default" : "") : `set ${model.needs}`
    ])
  )
