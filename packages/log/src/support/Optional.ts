/** Fields that may be absent: undefined is not a value of them. */
import { Schema } from "effect"

/** A field of a schema. */
export const optional = <S extends Schema.Schema.All>(schema: S) => Schema.optionalWith(schema, { exact: true })

type Present<A> = { readonly [K in keyof A]?: Exclude<A[K], undefined> }

/** Leaves out the fields that are undefined. */
export const present = <A extends object>(fields: A): Present<A> =>
  // The remaining fields keep their types, which `fromEntries` loses.
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Present<A>
