/**
 * Reads words that begin with an option instead of a command: `-p` is one prompt without a screen, everything else opens the
 * screen. Pure. Spec: SC-536..SC-538 in specs/screen.md.
 */
import { Either } from "effect"
import { oneLine } from "../render/Plain.ts"
import { UsageError } from "../support/Errors.ts"
import { didYouMean } from "../support/Nearest.ts"

export interface ScreenOptions {
  /** An id or the beginning of one, a title, or AGENT/SESSION. */
  readonly session: string | undefined
  /** Go on with the last session here. */
  readonly goOn: boolean
  readonly model: string | undefined
  readonly agent: string | undefined
  readonly trust: boolean
  readonly acceptEdits: boolean
  readonly readOnly: boolean
  readonly allow: ReadonlyArray<string>
  readonly plain: boolean
  /** The text of `-p`; undefined without it. */
  readonly prompt: ReadonlyArray<string> | undefined
  /** Options of the verb, for `-p`. */
  readonly rest: ReadonlyArray<string>
}

const values: Readonly<Record<string, "session" | "model" | "agent">> = {
  "-s": "session",
  "--session": "session",
  "-m": "model",
  "--model": "model",
  "-a": "agent",
  "--agent": "agent"
}

const toggles: Readonly<Record<string, "acceptEdits" | "goOn" | "plain" | "readOnly" | "trust">> = {
  "-c": "goOn",
  "--continue": "goOn",
  "--trust": "trust",
  "--accept-edits": "acceptEdits",
  "--read-only": "readOnly",
  "--plain": "plain"
}

/** Options of `daybook prompt` that `-p` passes on: without a value, and with one. */
const passed = new Set(["--json", "--no-reasoning", "--no-run"])
const passedWithValue = new Set([
  "--attach",
  "--cost",
  "--cwd",
  "--delivery",
  "--id",
  "--output-schema",
  "--system",
  "--tokens",
  "--tools"
])

const known = [...Object.keys(values), ...Object.keys(toggles), "--allow", "--help", "--print", "--version"].filter(
  (option) => option.startsWith("--")
)

const refuse = (message: string) => Either.left(new UsageError({ message }))

const help = ["--help", "-h"]
const others = ["--completions", "--version", ...help]

/** Whether these words are read here: the first words name no command, and no word asks for help. */
export const isTopLevel = (words: ReadonlyArray<string>): boolean => {
  const [first] = words
  if (first === undefined) return true
  return first.startsWith("-") && !others.includes(first) && !help.some((word) => words.includes(word))
}

/** No option. */
export const none: ScreenOptions = {
  session: undefined,
  goOn: false,
  model: undefined,
  agent: undefined,
  trust: false,
  acceptEdits: false,
  readOnly: false,
  allow: [],
  plain: false,
  prompt: undefined,
  rest: []
}

/** The options, and the text after `-p`. A verb after options is refused with its place. */
export const parse = (
  words: ReadonlyArray<string>,
  verbs: ReadonlyArray<string> = []
): Either.Either<ScreenOptions, UsageError> => {
  const given: { -readonly [Name in keyof ScreenOptions]: ScreenOptions[Name] } = { ...none }
  for (let at = 0; at < words.length; at++) {
    const [, name = "", inline] = /^(--?[a-z][a-z-]*)(?:=(.*))?$/s.exec(words[at] ?? "") ?? []
    const [value, toggle] = [values[name], toggles[name]]
    if (value !== undefined || name === "--allow" || passedWithValue.has(name)) {
      const text = inline ?? words[++at]
      if (text === undefined || text === "") return refuse(`${name}: a value is missing`)
      if (value !== undefined) given[value] = text
      else if (name === "--allow") given.allow = [...given.allow, text]
      else given.rest = [...given.rest, name, text]
    } else if (toggle !== undefined && inline === undefined) given[toggle] = true
    else if (passed.has(name) && inline === undefined) given.rest = [...given.rest, name]
    else if (name === "-p" || name === "--print")
      given.prompt = [...(given.prompt ?? []), ...(inline === undefined ? [] : [inline])]
    else if (given.prompt !== undefined && words[at] === "--") {
      given.prompt = [...given.prompt, ...words.slice(at + 1)]
      break
    } else if (given.prompt !== undefined) given.prompt = [...given.prompt, words[at] ?? ""]
    else {
      const word = oneLine(words[at] ?? "", 40)
      const verb = words.slice(at, at + 2).find((each) => verbs.includes(each))
      if (verb !== undefined) return refuse(`options follow the command: daybook ${verb} --help lists them`)
      return refuse(
        name === ""
          ? `unexpected argument "${word}"; -p prompts with it`
          : `unknown option ${word}${didYouMean(name, known) || ";"} daybook --help lists all`
      )
    }
  }
  const [surplus] = given.rest
  if (given.prompt === undefined && surplus !== undefined) return refuse(`${surplus} goes with a prompt: -p TEXT`)
  if (given.goOn && given.session !== undefined)
    return refuse("-c goes on with the last session: do not combine it with -s")
  return Either.right(given)
}

/** The same as words of a verb. Piped input is appended to the text. */
export const verbOf = ({
  acceptEdits,
  agent,
  allow,
  goOn,
  model,
  prompt = [],
  readOnly,
  rest,
  session,
  trust
}: ScreenOptions): ReadonlyArray<string> => [
  goOn ? "continue" : "prompt",
  ...(session === undefined ? [] : ["--session", session]),
  ...(model === undefined ? [] : ["--model", model]),
  ...(agent === undefined ? [] : ["--agent", agent]),
  ...(trust ? ["--trust"] : []),
  ...allow.flatMap((rules) => ["--allow", rules]),
  ...(acceptEdits ? ["--accept-edits"] : []),
  ...(readOnly ? ["--read-only"] : []),
  ...rest,
  "--stdin",
  "--",
  ...prompt
]
