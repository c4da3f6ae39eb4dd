/** A place to run the command in, and a model on the loopback that answers there when the test lets it. */
import { Effect } from "effect"
import * as ModelServer from "./ModelServer.ts"
import { place } from "./Process.ts"

/** The place, the model, and the variables that make the command ask it. */
export const held = Effect.gen(function* () {
  const model = yield* ModelServer.make
  const here = yield* place
  const env = { DAYBOOK_BASE_URL: model.url, DAYBOOK_MODEL: "openai-compatible/held" }
  return { model, here, env }
})
