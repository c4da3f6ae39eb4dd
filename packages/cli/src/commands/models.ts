/** `daybook models` and `daybook agents`: list what can be chosen. Spec: CL-92, CL-130, CL-720..CL-724. */
import { Effect } from "effect"
import { Agents } from "@daybook/core/agent/Agents"
import type { Agent } from "@daybook/core/domain/Agent"
import { modelText } from "@daybook/log/domain/Values"
import * as Flags from "../arguments/Flags.ts"
import * as Folder from "../arguments/Folder.ts"
import { type FieldValues, verb } from "../arguments/Verb.ts"
import { modelTable, serverTable } from "../host/ModelList.ts"
import { withNoSessions } from "../host/Runtime.ts"
import { columns, oneLine } from "../render/Plain.ts"
import { many } from "../support/Amounts.ts"
import { ModelUnreachable } from "../support/Errors.ts"
import { standard } from "../support/Stream.ts"
import { Output, writeJson } from "../terminal/Output.ts"

/** Columns: name, mode, model, how commands run, and description. */
export const agentTable = (agents: ReadonlyArray<Agent>): string =>
  columns(
    agents.map(({ bash = "process", description = "", mode = "all", model, name }) => [
      name,
      mode,
      model === undefined ? "-" : oneLine(modelText(model)),
      bash,
      oneLine(description, 200)
    ])
  )

const cwd = Flags.text("cwd", "DIR", "the folder whose agents are listed (default: the current one)")

/** Without header values, which may be secrets. */
const shown = ({ settings, ...agent }: Agent) => {
  const { headers, ...plain } = settings ?? {}
  const names = headers === undefined ? {} : { headers: Object.keys(headers).sort() }
  return settings === undefined ? agent : { ...agent, settings: { ...plain, ...names } }
}

const runAgents = Effect.fn("Command.agents")(function* (directory: string, json: boolean) {
  const output = yield* Output
  const agents = yield* Agents
  const found = yield* agents.list({ directory })
  yield* json ? writeJson(...found.map(shown)) : output.write(agentTable(found))
  for (const { details, path } of yield* agents.problems({ directory })) {
    yield* output.note(`${oneLine(path, 400)}: ${oneLine(details, 1_000)}\n`)
  }
})

export const agents = verb({
  name: "agents",
  summary: "list the agents available in a folder",
  words: "",
  details: [
    "The columns are: name, mode (primary: for sessions; subagent: for tasks of other agents; all), model, how bash runs " +
      "commands (process: each in its own; live: all of a session in one shell), and description. Agents are files in agents/ of the user's folder or .daybook/agents/ of the project, or sections of the " +
      "configuration. stderr reports agent files that cannot be used, or not entirely."
  ],
  given: { cwd, json: Flags.json },
  examples: [["daybook agents --cwd ~/work/site", "the agents of that project"]],
  run: ({ cwd, json }) =>
    Effect.flatMap(Folder.given(cwd, "--cwd"), (directory) => withNoSessions(runAgents(directory, json)))
})

const modelsGiven = {
  words: Flags.many("PATTERN"),
  all: Flags.toggle("all", "also models of providers without a key"),
  json: Flags.json
}

const runModels = Effect.fn("Command.models")(function* ({ all, json, words }: FieldValues<typeof modelsGiven>) {
  const output = yield* Output
  const { list, matches, servers } = yield* Effect.promise(() => import("../host/ModelList.ts"))
  const { hasProvider, models, silent } = yield* list(all)
  const isWanted = matches(words.flatMap((word) => word.split(/\s+/)))
  const found = models.filter(isWanted)
  const cells = output.terminal ? (standard().stdout.columns() ?? 80) : Infinity
  yield* json ? writeJson(...found) : output.write(modelTable(found, cells))
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
  given: modelsGiven,
  examples: [
    ["daybook models", "every model that can be used now"],
    ["daybook models --all qwen coder", "models of all providers with both words in their names"],
    ["daybook models --json | jq -r .model", "the names of the models that can be used now"]
  ],
  run: runModels
})
