/**
 * A connection that prepares each text once, and takes every value that SQLite takes. `@effect/sql-pg` sends texts without
 * names, and to parse and plan the longer statements of the stores costs more than to run them. Spec: PG-11.
 */
import * as Pg from "pg"

/** Texts that are prepared: a connection keeps each. Statements with lists have a text for each length. */
const most = 400

const names = new Map<string, string>()

const nameOf = (text: string): string | undefined => {
  const known = names.get(text)
  if (known !== undefined || names.size >= most) return known
  const name = `daybook_${names.size + 1}`
  names.set(text, name)
  return name
}

const [greatest, smallest] = ["9223372036854775807", "-9223372036854775808"]

/** A text has no U+0000, and no integer is beyond 64 bits: a caller's cursor or id may be anything. */
const storable = (value: unknown): unknown => {
  if (typeof value === "string") return value.includes("\0") ? value.replaceAll("\0", "\uFFFD") : value
  if (typeof value === "number" && !Number.isSafeInteger(value)) {
    if (Number.isNaN(value)) return null
    return value > Number(greatest) ? greatest : value < Number(smallest) ? smallest : value
  }
  return Array.isArray(value) ? value.map(storable) : value
}

/** Gives a statement with parameters the name of its text. */
export const prepared = (config: Pg.QueryConfig): Pg.QueryConfig => {
  const { values = [] } = config
  if (values.length === 0) return config
  const name = config.name ?? nameOf(config.text)
  const stored = { ...config, values: values.map(storable) }
  return name === undefined ? stored : { ...stored, name }
}

type Query = (config: unknown, values?: unknown, callback?: unknown) => unknown

const isStatement = (config: unknown): config is Pg.QueryConfig =>
  typeof config === "object" && config !== null && !("submit" in config) && "text" in config

export class PoolClient extends Pg.Client {
  constructor(config?: string | Pg.ClientConfig) {
    super(config)
    const send = this.query.bind(this) as Query
    const query: Query = (config, values, callback) => {
      if (isStatement(config)) return send(prepared(config), values, callback)
      return typeof config === "string" && Array.isArray(values)
        ? send(prepared({ text: config, values }), undefined, callback)
        : send(config, values, callback)
    }
    // One function in place of the declared overloads.
    Object.assign(this, { query })
  }
}
