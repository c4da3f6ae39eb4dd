/** Defines how sessions get their names. Spec: NM-8 in specs/names.md. */
import { Schema } from "effect"

/** How sessions without a name get one: from the session's model, from the first prompt, or not at all. */
export const NamingMode = Schema.Literal("model", "prompt", "off")
export type NamingMode = typeof NamingMode.Type
