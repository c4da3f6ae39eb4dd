/** A place to run the command in, with a loopback model that answers when the test allows it. */
import { Effect } from "effect"
import * as ModelServer from "./ModelServer.ts"
import { place } from "./Process.ts"

/** The place, the model, and the variables that make the command use it. */
export const held = Effect.gen(function* () {
  const model = yield* ModelServer.make
  const here = yield* place
  const env = { DAYBOOK_BASE_URL: model.url, DAYBOOK_MODEL: "openai-compatible/held" }
  return { model, here, env }
})
