/** The session's folder and platform. Spec: specs/context.md CX-20. */
import { Effect, Schema } from "effect"
import { quotedPath } from "../../support/QuotedPath.ts"
import { available, type ContextSource, source } from "../SystemContext.ts"

const Environment = Schema.Struct({ directory: Schema.String, platform: Schema.String })
type Environment = typeof Environment.Type

const place = ({ directory, platform }: Environment) => `in the folder ${quotedPath(directory)} on ${platform}`
const paths = "Paths you give to tools are relative to it."

/** A source for the Location's folder and the platform. */
export const make = (directory: string): ContextSource =>
  source({
    key: "daybook/environment",
    schema: Environment,
    load: () => Effect.succeed(available({ directory, platform: process.platform })),
    baseline: (here) => `You work ${place(here)}. ${paths}`,
    update: (_, here) => `You work ${place(here)} now. ${paths}`
  })
