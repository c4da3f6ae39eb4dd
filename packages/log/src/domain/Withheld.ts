/** Defines the parts of messages that are withheld from a model, because its server refused them. Spec: RQ-644. */
import { Schema } from "effect"
import { ModelRef } from "./Values.ts"

const optional = <S extends Schema.Schema.All>(schema: S) => Schema.optionalWith(schema, { exact: true })

/** What a refused part is; `input` is that of a call. */
export const WithheldKind = Schema.Literal("image", "pdf", "text", "input")
export type WithheldKind = typeof WithheldKind.Type

/** What an event says of a part of a message. */
export const withheldFields = {
  /** The call of the answer whose input or result has the part; absent: the message has it. */
  callID: optional(Schema.NonEmptyString),
  /** The place in the result's content, or in the prompt's expansion, else its files. Absent: its whole text. */
  index: optional(Schema.NonNegativeInt),
  kind: WithheldKind,
  /** The model that the part is withheld from. */
  model: ModelRef,
  /** Why the server refused it, in its words. Absent: the part is shown again. */
  reason: optional(Schema.String.pipe(Schema.maxLength(300)))
}

/** A part that one model is not shown. */
export const Withheld = Schema.Struct(withheldFields)
export type Withheld = typeof Withheld.Type

const kindNames = { image: "a picture", pdf: "a PDF document", text: "a text", input: "the input" } as const

/** The event in a sentence for people. */
export const withheldText = ({ callID, kind, model, reason }: Withheld): string => {
  const place = callID === undefined ? "" : kind === "input" ? ` of call ${callID}` : ` of the result of call ${callID}`
  const part = `${kindNames[kind]}${place}`
  const name = `${model.providerID}/${model.id}`
  return reason === undefined
    ? `${name} is shown ${part} again`
    : `${name} is not shown ${part}: its server refused it (${reason})`
}

/** Whether both name the same part, withheld from the same model. */
export const samePart = (a: Withheld, b: Withheld): boolean =>
  a.callID === b.callID &&
  a.index === b.index &&
  a.kind === b.kind &&
  a.model.providerID === b.model.providerID &&
  a.model.id === b.model.id
