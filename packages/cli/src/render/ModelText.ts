/** Renders models and providers as lines. Pure. Spec: CL-130, CL-721, CL-723 in specs/cli.md. */
import type { Price } from "@daybook/log/domain/Values"
import { columns, oneLine } from "./Plain.ts"
import { cut, width } from "./Width.ts"

/** One model, and the setting that it needs. */
export interface ListedModel {
  readonly model: string
  readonly name: string
  readonly contextTokens?: number
  readonly outputTokens?: number
  readonly price?: Price
  /** The media that the model takes besides text. */
  readonly media?: ReadonlyArray<"image" | "pdf">
  readonly thinks?: boolean
  readonly variants?: ReadonlyArray<string>
  readonly source: "catalogue" | "configuration" | "server" | "built in"
  /** The missing setting; absent if the model can be used now. */
  readonly needs?: string
  readonly default: boolean
}

/** One server, and the variables that hold its key. */
export interface ListedServer {
  readonly provider: string
  readonly name: string
  readonly keys: ReadonlyArray<string>
}

/** `200k`, `1M`, `1.05M`. */
const tokens = (count = 0): string => {
  if (count === 0) return "-"
  const thousands = Math.round(count / 1_000)
  return thousands < 1_000 ? `${thousands}k` : `${Math.round(thousands / 10) / 100}M`
}

const prices = (price: ListedModel["price"]): string => (price === undefined ? "-" : `$${price.input}/$${price.output}`)

const thinking = ({ thinks, variants = [] }: ListedModel): string =>
  variants.length > 0 ? variants.join(",") : thinks === undefined ? "-" : thinks ? "yes" : "no"

const state = (model: ListedModel): string =>
  model.needs === undefined ? (model.default ? "default" : "ready") : `set ${model.needs}`

/** The columns between name and state, and the order in which a narrow terminal loses them. */
const middle = [
  { loses: 5, cell: (model: ListedModel) => tokens(model.contextTokens) },
  { loses: 2, cell: (model: ListedModel) => tokens(model.outputTokens) },
  { loses: 4, cell: (model: ListedModel) => prices(model.price) },
  { loses: 3, cell: ({ media }: ListedModel) => (media === undefined ? "-" : ["text", ...media].join(",")) },
  { loses: 1, cell: thinking }
]

const widest = (lines: string): number => lines.split("\n").reduce((most, line) => Math.max(most, width(line)), 0)

/**
 * Columns: name, window, output limit, price of a million input and output tokens, inputs, thinking, and whether the model
 * can be used. A terminal that is too narrow gets fewer columns, at last a truncated name.
 */
export const modelTable = (models: ReadonlyArray<ListedModel>, cells = Infinity): string => {
  const table = (lost: number, name: number) =>
    columns(
      models.map((model) => [
        cut(oneLine(model.model, 120), name),
        ...middle.filter(({ loses }) => loses > lost).map(({ cell }) => cell(model)),
        state(model)
      ])
    )
  for (let lost = 0; lost <= middle.length; lost++) {
    const shown = table(lost, 120)
    if (widest(shown) <= cells) return shown
  }
  const states = models.reduce((most, model) => Math.max(most, width(state(model))), 0)
  return table(middle.length, Math.max(12, cells - states - 2))
}

/** Columns: provider, name for people, variables. */
export const serverTable = (servers: ReadonlyArray<ListedServer>): string =>
  columns(servers.map(({ keys, name, provider }) => [provider, name, `set ${keys.join(" or ")}`]))
