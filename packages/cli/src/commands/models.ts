/** `daybook models`: lists the models that can be chosen. Spec: CL-130. */
import * as Command from "@effect/cli/Command"
import { Effect } from "effect"
import * as Flags from "../arguments/Flags.ts"
import type { Verb } from "../arguments/Verb.ts"
import { modelTable } from "../render/ModelText.ts"
import { jsonLine, oneLine } from "../render/Plain.ts"
import { ModelUnreachable } from "../support/Errors.ts"
import { Output } from "../terminal/Output.ts"

const run = Effect.fn("Command.models")(function* (json: boolean) {
  const output = yield* Output
  const { list } = yield* Effect.promise(() => import("../host/ModelList.ts"))
  const { models, silent } = yield* list
  yield* output.write(
    json ? models.map((model) => `${jsonLine(model, output.terminal)}\n`).join("") : modelTable(models)
  )
  if (silent.length > 0) {
    return yield* new ModelUnreachable({
      message: silent.map(({ provider, why }) => `${provider}: ${oneLine(why, 400)}`).join("; ")
    })
  }
})

export const models = {
  name: "models",
  summary: "list the models that can be chosen",
  words: "",
  details: [
    "The columns are: name for --model, tokens of its context window, price of a million input and output tokens, source, " +
      "and the setting that is missing. The server at DAYBOOK_BASE_URL is asked for its list."
  ],
  flags: [Flags.json],
  examples: [
    ["daybook models", "every known model"],
    ["daybook models --json | jq -r 'select(.needs == null).model'", "the names of the models that can be used now"]
  ],
  command: Command.make("models", { json: Flags.json.options }, ({ json }) => run(json))
} satisfies Verb
