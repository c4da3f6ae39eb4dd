/** Fields that events of several families share. */
import { Schema } from "effect"
import { MessageID } from "../domain/Identifiers.ts"
import { Tokens } from "../domain/Values.ts"

export const optional = <S extends Schema.Schema.All>(schema: S) => Schema.optionalWith(schema, { exact: true })

export const assistantMessageID = MessageID
export const callID = Schema.NonEmptyString
export const paths = Schema.Array(Schema.String)
/** The token counts are Daybook's estimate, not the provider's. */
export const estimated = optional(Schema.Literal(true))
/** Cost and tokens of requests. */
export const spent = { cost: optional(Schema.Finite), tokens: optional(Tokens), estimated }
