/** A field that may be absent; undefined is not a value of it. */
import { Schema } from "effect"

export const optional = <S extends Schema.Schema.All>(schema: S) => Schema.optionalWith(schema, { exact: true })
