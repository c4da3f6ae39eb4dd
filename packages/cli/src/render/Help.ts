/** The help texts, from the verbs themselves. Pure; written to files when the command is built. Spec: CL-3. */
import type { Verb } from "../Verb.ts"
import { columns } from "./Plain.ts"

/** What a verb's help shows. */
export type Helped = Omit<Verb, "command">

const wrap = (text: string, width = 88): string => {
  const lines: Array<string> = []
  let line = ""
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(line)
      line = word
    } else line = line === "" ? word : `${line} ${word}`
  }
  return [...lines, line].join("\n")
}

const exitCodes: ReadonlyArray<readonly [string, string]> = [
  ["0", "done"],
  ["1", "the activity failed; files differ from the log"],
  ["2", "the command line or an input cannot be used"],
  ["3", "no such session, agent, cursor or database"],
  ["4", "conflict: the id is taken, the inbox is full, another process is at work"],
  ["5", "no such model, or its provider failed"],
  ["6", "the database, or the root of files and sockets, cannot be used"],
  ["74", "stdout or stderr cannot be written"],
  ["130", "interrupted"]
]

const environment: ReadonlyArray<readonly [string, string]> = [
  ["DAYBOOK_DB", "the database file; else daybook/daybook.sqlite in XDG_DATA_HOME or ~/.local/share"],
  ["DAYBOOK_ROOT", "the folder of files and sockets; else ctx beside the database"],
  ["DAYBOOK_CONFIG", "the configuration file; else daybook/config.yaml in XDG_CONFIG_HOME or ~/.config"],
  ["DAYBOOK_MODEL", "the model as provider/model, when --model and the session name none"],
  ["DAYBOOK_QUESTIONS", "1: models may ask without a terminal, since daybook answer answers"],
  ["DAYBOOK_DISABLE_PROJECT_CONFIG", "1: no instructions, agents, templates or skills of projects"],
  ["DAYBOOK_DEBUG", "any value: log to stderr, and show where an error came from"],
  ["ANTHROPIC_API_KEY, OPENAI_API_KEY", "keys of the providers; with none, an offline model answers"],
  [
    "DAYBOOK_BASE_URL",
    "a server that speaks chat completions, as provider openai-compatible; daybook models lists its models"
  ],
  ["DAYBOOK_API_KEY", "its key, where it wants one"],
  ["NO_COLOR", "any value: no colours on the terminal"],
  [
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "a collector that spans, metrics and logs are sent to, with OpenTelemetry's other variables"
  ]
]

const table = (rows: ReadonlyArray<readonly [string, string]>): string =>
  columns(rows.map(([left, right]) => [`  ${left}`, right]))

/** Help of the whole command. */
export const rootHelp = (version: string, verbs: ReadonlyArray<Helped>): string =>
  [
    `daybook ${version}: durable sessions for AI agents\n`,
    "Usage: daybook COMMAND [options] [words]\n",
    `Commands:\n${table(verbs.map((verb) => [verb.name, verb.summary]))}`,
    `Environment:\n${table(environment)}`,
    `Exit codes:\n${table(exitCodes)}`,
    "daybook COMMAND --help tells more; daybook --version; daybook --completions bash|zsh|fish\n"
  ].join("\n")

/** Help of one verb. */
export const verbHelp = (verb: Helped): string => {
  const flags = [...verb.flags.map((flag) => [signature(flag), flag.about] as const), ["--help", "this text"] as const]
  return [
    `daybook ${verb.name}: ${verb.summary}\n`,
    `Usage: daybook ${verb.name} [options]${verb.words === "" ? "" : ` ${verb.words}`}\n`,
    ...verb.details.map((text) => `${wrap(text)}\n`),
    `Options:\n${table(flags)}`,
    `Examples:\n${verb.examples.map(([line, does]) => `  ${line}\n      ${does}\n`).join("")}`
  ].join("\n")
}

const signature = (flag: { readonly name: string; readonly value?: string }): string =>
  `--${flag.name}${flag.value === undefined ? "" : ` ${flag.value}`}`
