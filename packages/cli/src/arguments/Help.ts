/** Renders the help texts from the verbs. Pure; the build writes them to files. Spec: CL-3. */
import wrapAnsi from "wrap-ansi"
import { columns, width } from "../render/Plain.ts"
import type { Verb } from "./Verb.ts"

/** The parts of a verb that help shows. */
type Helped = Omit<Verb, "run" | "actions"> & { readonly actions?: ReadonlyArray<Helped> }

const textWidth = 88

const exitCodes: ReadonlyArray<readonly [string, string]> = [
  ["0", "done"],
  ["1", "the activity failed; the files differ from the log"],
  ["2", "the command line or an input cannot be used"],
  ["3", "no such session, agent, cursor, database, or open shell"],
  ["4", "conflict: the id is taken, the inbox is full, another process holds the resource"],
  ["5", "no such model, or its provider failed"],
  ["6", "the database, or the root of files and sockets, cannot be used"],
  ["7", "the answer was cut off at the model's output limit"],
  ["8", "the provider's filter withheld the answer or its rest"],
  ["9", "the model refused to answer"],
  ["10", "the model answered nothing, or announced a tool call and made none"],
  ["11", "the answer is whole, but calls were refused because nobody allowed them"],
  ["12", "the session's budget is spent"],
  ["74", "stdout or stderr cannot be written"],
  ["130", "interrupted"]
]

const environment: ReadonlyArray<readonly [string, string]> = [
  [
    "DAYBOOK_DB",
    "the database: a file (default: daybook/daybook.sqlite in XDG_DATA_HOME or ~/.local/share), or " +
      "postgres://USER:PASSWORD@HOST:PORT/DATABASE, with the schema after ?schema= (default: daybook); --database before " +
      "the command replaces it"
  ],
  ["DAYBOOK_ROOT", "the folder of files and sockets (default: ctx beside the database)"],
  ["DAYBOOK_CONFIG", "the configuration file (default: daybook/config.yaml in XDG_CONFIG_HOME or ~/.config)"],
  ["DAYBOOK_MODEL", "the default model, as provider/model"],
  ["DAYBOOK_NAMING", "model, prompt or off: how sessions get their names (default: model)"],
  ["DAYBOOK_QUESTIONS", "1: models may ask without a terminal; use daybook answer"],
  [
    "DAYBOOK_HTTP_TOKEN",
    "the own token of daybook serve, for servers of several machines (default: the file http-token in the data folder)"
  ],
  ["DAYBOOK_WATCH_TOKEN", "the token of the page of daybook shell watch --serve (default: a new one at each start)"],
  ["DAYBOOK_DISABLE_PROJECT_CONFIG", "1: ignore instructions, agents, templates and skills of projects"],
  ["DAYBOOK_DEBUG", "any value: log to stderr, and show stack traces of errors"],
  [
    "ANTHROPIC_API_KEY, ...",
    "keys of the providers, whose variables daybook models lists; without a key, an offline model answers"
  ],
  [
    "DAYBOOK_BASE_URL",
    "a server with the chat completions API, as provider openai-compatible; daybook models lists its models"
  ],
  ["DAYBOOK_API_KEY", "the key of that server, if it requires one"],
  ["NO_COLOR", "any value: no colours on the terminal"],
  ["OTEL_EXPORTER_OTLP_ENDPOINT", "the collector of spans, metrics and logs; OpenTelemetry's other variables apply too"]
]

const tableWidth = 100

/** Two columns; the right one is wrapped, but not to less than half of the width. */
const table = (rows: ReadonlyArray<readonly [string, string]>): string => {
  const left = Math.max(...rows.map(([name]) => width(name))) + 4
  const cells = Math.max(tableWidth / 2, tableWidth - left)
  return columns(
    rows.flatMap(([name, about]) =>
      wrapAnsi(about, cells)
        .split("\n")
        .map((line, at) => [at === 0 ? `  ${name}` : "", line])
    )
  )
}

export const rootHelp = (version: string, verbs: ReadonlyArray<Helped>): string =>
  [
    `daybook ${version}: durable sessions for AI agents\n`,
    "Usage: daybook COMMAND [options] [words]",
    `       daybook [-c | -s SESSION] [-m P/M] [-a AGENT] [--plain | -p TEXT...]\n`,
    "Without a command, a terminal gets a screen to work in: a new session or the last one here, -c that one, -s a\n" +
      "named one; --plain writes lines only. -p prompts once, with what is piped in below the text.\n",
    `Commands:\n${table(verbs.map((verb) => [verb.name, verb.summary]))}`,
    `Environment:\n${table(environment)}`,
    `Exit codes:\n${table(exitCodes)}`,
    "See also: daybook COMMAND --help, daybook --version, daybook --completions bash|zsh|fish\n"
  ].join("\n")

/** Help of one verb, or of one action of the verb `of`. */
const verbHelp = (verb: Helped, of = ""): string => {
  const flags = [...verb.flags.map((flag) => [signature(flag), flag.about] as const), ["--help", "this text"] as const]
  const name = `${of}${verb.name}`
  const { actions = [] } = verb
  return [
    `daybook ${name}: ${verb.summary}\n`,
    `Usage: daybook ${name}${actions.length > 0 ? "" : " [options]"}${verb.words === "" ? "" : ` ${verb.words}`}\n`,
    ...verb.details.map((text) => `${wrapAnsi(text, textWidth)}\n`),
    ...(actions.length === 0
      ? []
      : [`Actions:\n${table(actions.map((action) => [`${action.name} ${action.words}`.trim(), action.summary]))}`]),
    `Options:\n${table(flags)}`,
    `Examples:\n${verb.examples.map(([line, does]) => `  ${line}\n      ${does}\n`).join("")}`
  ].join("\n")
}

/** The help texts of verbs and of their actions, by what follows `daybook help`. */
export const verbHelps = (verbs: ReadonlyArray<Helped>): Readonly<Record<string, string>> =>
  Object.fromEntries(
    verbs.flatMap((verb) => [
      [verb.name, verbHelp(verb)],
      ...(verb.actions ?? []).map((action) => [`${verb.name} ${action.name}`, verbHelp(action, `${verb.name} `)])
    ])
  )

const signature = (flag: { readonly name: string; readonly value?: string }): string =>
  `--${flag.name}${flag.value === undefined ? "" : ` ${flag.value}`}`
