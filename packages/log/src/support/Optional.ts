/** Fields that may be absent: undefined is not a value of them. */
import { Schema } from "effect"

/** A field of a schema. */
export const optional = <S extends Schema.Schema.All>(schema: S) => Schema.optionalWith(schema, { exact: true })

type Present<A> = { [K in keyof A as undefined extends A[K] ? never : K]: A[K] } & {
  [K in keyof A as undefined extends A[K] ? K : never]?: Exclude<A[K], undefined>
}

/** Leaves out the fields that are undefined. */
export const present = <A extends object>(fields: A): Present<A> =>
  // The remaining fields keep their types, which `fromEntries` loses.
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Present<A>
