/** A validator of values against the schemas of a document, in its strict mode. Another library than that which made them. */
import Ajv2020, { type ValidateFunction } from "ajv/dist/2020.js"
import type { OpenAPISpec } from "@effect/platform/OpenApi"

export interface Validator {
  /** Compiles the schema at a pointer of the document. */
  readonly compile: (pointer: string) => ValidateFunction
  /** Why a value does not fit the schema at a pointer; an empty list if it does. */
  readonly faults: (pointer: string, value: unknown) => ReadonlyArray<string>
}

export const validatorOf = (document: OpenAPISpec): Validator => {
  // A field may have the type of a schema beside it: `strictTypes` is about style.
  const ajv = new Ajv2020.default({ strict: true, strictTypes: false, allErrors: true, formats: { uri: true } })
  for (const field of Object.keys(document)) ajv.addKeyword(field)
  ajv.addSchema(document, "document")
  const compile = (pointer: string): ValidateFunction => {
    const compiled = ajv.getSchema(`document#${encodeURI(pointer)}`)
    if (compiled === undefined) throw new Error(`no schema at ${pointer}`)
    return compiled
  }
  return {
    compile,
    faults: (pointer, value) => {
      const validate = compile(pointer)
      return validate(value)
        ? []
        : (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`)
    }
  }
}
