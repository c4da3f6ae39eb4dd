/** `daybook agents`: lists the agents of a folder. Spec: CL-92. */
import { Effect } from "effect"
import { Agents } from "@daybook/core/agent/Agents"
import type { Agent } from "@daybook/core/domain/Agent"
import * as Flags from "../arguments/Flags.ts"
import * as Folder from "../arguments/Folder.ts"
import { verb } from "../arguments/Verb.ts"
import { withNoSessions } from "../host/Runtime.ts"
import { agentTable } from "../render/AgentText.ts"
import { jsonLine, oneLine } from "../render/Plain.ts"
import { Output } from "../terminal/Output.ts"

const cwd = Flags.text("cwd", "DIR", "the folder whose agents are listed (default: the current one)")

/** Without header values, which may be secrets. */
const shown = ({ settings, ...agent }: Agent) => {
  const { headers, ...plain } = settings ?? {}
  const names = headers === undefined ? {} : { headers: Object.keys(headers).sort() }
  return settings === undefined ? agent : { ...agent, settings: { ...plain, ...names } }
}

const run = Effect.fn("Command.agents")(function* (directory: string, json: boolean) {
  const output = yield* Output
  const agents = yield* Agents
  const found = yield* agents.list({ directory })
  yield* output.write(
    json ? found.map((agent) => `${jsonLine(shown(agent), output.terminal)}\n`).join("") : agentTable(found)
  )
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
    Effect.flatMap(Folder.given(cwd, "--cwd"), (directory) => withNoSessions(run(directory, json)))
})
