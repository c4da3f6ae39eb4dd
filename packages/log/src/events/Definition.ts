/** Defines event types: a name, a version if durable, and the payload's schema. Spec: EV-D1..EV-D4. */
import { Schema } from "effect"

/** A durable event type, stored as `<type>.<version>`. */
export interface Durable<Type extends string, Fields extends Schema.Struct.Fields> {
  readonly type: Type
  readonly version: number
  readonly data: Schema.Struct<Fields>
}

/** A live event type: sent to connected subscribers only, never stored, without sequence number or version. */
export interface Live<Type extends string, Fields extends Schema.Struct.Fields> {
  readonly type: Type
  readonly data: Schema.Struct<Fields>
}

/** Defines a durable event type. Raise `version` when a reader of the old shape would misread the new one. */
export const durable = <const Type extends string, Fields extends Schema.Struct.Fields>(
  type: Type,
  version: number,
  fields: Fields
): Durable<Type, Fields> => ({ type, version, data: Schema.Struct(fields) })

/** Defines a live event type. */
export const live = <const Type extends string, Fields extends Schema.Struct.Fields>(
  type: Type,
  fields: Fields
): Live<Type, Fields> => ({ type, data: Schema.Struct(fields) })
