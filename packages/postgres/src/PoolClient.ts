/**
 * A connection that prepares each text once. `@effect/sql-pg` sends texts without names, and to parse and plan the
 * longer statements of the stores costs more than to run them. Spec: PG-11.
 */
import Pg from "pg"

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

/** Gives a statement with parameters the name of its text. */
export const prepared = (config: Pg.QueryConfig): Pg.QueryConfig => {
  if (config.name !== undefined || config.values === undefined || config.values.length === 0) return config
  const name = nameOf(config.text)
  return name === undefined ? config : { ...config, name }
}

type Query = (config: unknown, values?: unknown, callback?: unknown) => unknown

export class PoolClient extends Pg.Client {
  constructor(config?: string | Pg.ClientConfig) {
    super(config)
    // The declared overloads cannot be overridden by one method.
    const query = this.query.bind(this) as Query
    const shadowed: { query: Query } = this as never
    shadowed.query = (config, values, callback) => {
      if (typeof config === "string") {
        return Array.isArray(values)
          ? query(prepared({ text: config, values }), undefined, callback)
          : query(config, values, callback)
      }
      const isPlain = typeof config === "object" && config !== null && !("submit" in config) && "text" in config
      return query(isPlain ? prepared(config as Pg.QueryConfig) : config, values, callback)
    }
  }
}
