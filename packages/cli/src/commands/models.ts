/** `daybook models`: lists the models that can be chosen. Spec: CL-130, CL-720..CL-724. */
import { Effect } from "effect"
import * as Flags from "../arguments/Flags.ts"
import { verb } from "../arguments/Verb.ts"
import { modelTable, serverTable } from "../render/ModelText.ts"
import { jsonLine, oneLine } from "../render/Plain.ts"
import { many } from "../support/Amounts.ts"
import { ModelUnreachable } from "../support/Errors.ts"
import { standard } from "../support/Stream.ts"
import { Output } from "../terminal/Output.ts"

const all = Flags.toggle("all", "also models of providers without a key")

interface Options {
  readonly all: boolean
  readonly json: boolean
  readonly words: ReadonlyArray<string>
}

const run = Effect.fn("Command.models")(function* ({ all, json, words }: Options) {
  const output = yield* Output
  const { list, matches, servers } = yield* Effect.promise(() => import("../host/ModelList.ts"))
  const { hasProvider, models, silent } = yield* list(all)
  const isWanted = matches(words.flatMap((word) => word.split(/\s+/)))
  const found = models.filter(isWanted)
  const cells = output.terminal ? (standard().stdout.columns() ?? 80) : Infinity
  yield* output.write(
    json ? found.map((model) => `${jsonLine(model, output.terminal)}\n`).join("") : modelTable(found, cells)
  )
  if (!hasProvider && !all && !json && words.length === 0) yield* output.write(`\n${serverTable(servers)}`)
  if (found.length === 0) {
    const others = all ? 0 : (yield* list(true)).models.filter(isWanted).length
    const more = others === 0 ? "" : `; ${many(others, "model")} without a key: daybook models --all ${words.join(" ")}`
    yield* output.note(`no model matches ${oneLine(words.join(" "), 80)}${oneLine(more, 120)}\n`)
  }
  const { exposedKeys } = yield* Effect.promise(() => import("../config/Configuration.ts"))
  const exposed = yield* exposedKeys
  if (exposed !== undefined) yield* output.note(`${exposed}\n`)
  if (silent.length > 0) {
    return yield* new ModelUnreachable({
      message: silent.map(({ provider, why }) => `${provider}: ${oneLine(why, 400)}`).join("; ")
    })
  }
})

export const models = verb({
  name: "models",
  summary: "list the models that can be chosen",
  words: "[PATTERN...]",
  details: [
    "The columns are: name for --model, tokens of its context window and of its longest answer, price of a million input and " +
      "output tokens, inputs, levels of thinking, and ready, default, or the variable to set. A pattern is words that a " +
      "model's name contains. Servers that the catalogue does not know are asked for their lists. Without any key, the " +
      "variables of all providers are listed."
  ],
  given: { words: Flags.many("PATTERN"), all, json: Flags.json },
  examples: [
    ["daybook models", "every model that can be used now"],
    ["daybook models --all qwen coder", "models of all providers with both words in their names"],
    ["daybook models --json | jq -r .model", "the names of the models that can be used now"]
  ],
  run: run
})
