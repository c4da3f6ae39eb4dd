/** `daybook mcp`: live shells for MCP clients, over standard input and output. Spec: SL-120..SL-129 in specs/shell.md. */
import { Effect } from "effect"
import * as ShellMcp from "@daybook/shell/mcp/ShellMcp"
import * as Flags from "../arguments/Flags.ts"
import { verb } from "../arguments/Verb.ts"
import * as ShellsHost from "../host/ShellsHost.ts"
import { oneLine } from "../render/Plain.ts"
import { UsageError } from "../support/Errors.ts"
import * as Signal from "../support/Signal.ts"
import * as Watchdog from "../support/Watchdog.ts"

// The build defines it.
declare const DAYBOOK_VERSION: string

const run = Effect.fn("Command.mcp")(function* (options: { readonly record: boolean }) {
  const signal = yield* Signal.first
  yield* Watchdog.begin()
  yield* Effect.raceFirst(ShellMcp.serve({ version: DAYBOOK_VERSION }), signal).pipe(
    Effect.provide(ShellsHost.layer(options.record ? "daybook mcp" : undefined))
  )
}, Effect.scoped)

export const mcp = verb({
  name: "mcp",
  summary: "serve live shells to an MCP client over stdin and stdout",
  words: "",
  details: [
    "The client gets the tools session_create, session_exec, session_destroy, session_list and session_output, and " +
      "session_checkpoint, session_checkpoints and session_restore for the files of a workspace. A shell keeps its folder, variables and jobs from command to command. Output is returned without secrets and within a " +
      "budget; the whole output stays on disk. When stdin ends, or after a signal, every shell is closed.",
    "Configuration of a client:",
    '{"mcpServers": {"shells": {"command": "daybook", "args": ["mcp"]}}}',
    "Of the variables that the client sets for the server, shells on this machine get the harmless ones, such as PATH, and those that " +
      "environment.bash in the configuration file names.",
    "The section shell of the configuration file sets how long a shell may be idle, how many may be open, and where whole " +
      "outputs are kept. What the shells ran is recorded as a session: daybook shell watch shows it."
  ],
  given: { words: Flags.many("WORD"), noRecord: Flags.toggle("no-record", "store nothing in the database") },
  examples: [
    ["daybook mcp", "serves until stdin ends; started by an MCP client"],
    ["daybook mcp --no-record", "leaves no session in the database"],
    ["claude mcp add shells -- daybook mcp", "adds the server to Claude Code"]
  ],
  run: (given) =>
    Effect.gen(function* () {
      const [word] = given.words
      if (word !== undefined) {
        return yield* new UsageError({ message: `daybook mcp takes no words: "${oneLine(word, 80)}"` })
      }
      yield* run({ record: !given.noRecord })
    })
})
