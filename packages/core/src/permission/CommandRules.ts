/**
 * Gives the rules' verdict on a command line: every command that it runs must be allowed, and a denied command denies
 * the line, however it is wrapped or quoted. `CommandLine.ts` parses lines. Pure. Spec: BR-1..BR-15, BR-20, BR-21 in
 * specs/tools.md.
 */
import { compile, meet, type Pattern, test } from "../domain/Pattern.ts"
import { type Approval, matches, type Rule, type Verdict } from "../domain/Rule.ts"
import { type Hazard, hazardsOf } from "./CommandHazards.ts"
import {
  bareCommand,
  type CommandLine,
  type Grammar,
  readCommandLine,
  type ReadLine,
  type SimpleCommand,
  type Word
} from "./CommandLine.ts"
import { isHarmless } from "./CommandOptions.ts"
import { joined, baseName, executesInput, innerOf, isReader, isShell, isWrapper, nameOf } from "./CommandWrappers.ts"

type CommandRule = { readonly pattern: Pattern; readonly verdict: Verdict }

interface Rules {
  readonly list: ReadonlyArray<CommandRule>
  /** Every command is allowed without exception. */
  readonly open: boolean
}

const rulesOf = (rules: ReadonlyArray<Rule>, permission: string): Rules => {
  const list = rules
    .filter((rule) => matches(rule.permission, permission))
    .map(({ resource, verdict }) => ({ pattern: compile(resource), verdict }))
    .toReversed()
  const exception = list.findIndex(({ verdict }) => verdict !== "allow")
  const all = list.findIndex(({ pattern, verdict }) => pattern.universal && verdict === "allow")
  return { list, open: all >= 0 && (exception < 0 || all < exception) }
}

/** Whether the text contains the name as whole words. */
const contains = (text: string, name: string): boolean => {
  for (let at = text.indexOf(name); at >= 0; at = text.indexOf(name, at + 1)) {
    const [before, after] = [text[at - 1] ?? " ", text[at + name.length] ?? " "]
    if (!/\w/.test(name) || (/\s/.test(before) && (/[\s=]/.test(after) || name.endsWith("=")))) return true
  }
  return false
}

/** Whether the rule names a command's hazard: it contains the name, or is for this or every command. */
const names = ({ open }: Rules, { pattern }: CommandRule, { hides, name }: Hazard, source: string): boolean =>
  (pattern.universal && (open || !hides)) ||
  (name === undefined ? pattern.literal === source : pattern.texts.some((text) => contains(text, name)))

const plain = (words: ReadonlyArray<Word>): string => words.map(({ text }) => text).join(" ")

/** Joins words; a character that no rule has replaces their white space, so that spaces match between words. */
const apart = (words: ReadonlyArray<Word>): string => words.map(({ text }) => text.replaceAll(/\s/g, "\0")).join(" ")

/** The texts that an allowing rule may match. */
const textsOf = ({ assignments, redirects, source, words }: SimpleCommand): ReadonlyArray<string> => {
  const around = [...assignments, ...redirects.filter(({ harmless }) => !harmless)].map(({ text }) => text)
  const whole = [...assignments.map(({ text }) => text), apart(words), ...redirects.map(({ text }) => text)].join(" ")
  return [apart(words), source, ...(around.length === 0 ? [] : [whole])]
}

/** A pattern of the texts that the command can expand to. A word that can vanish takes its space with it. */
const patternOf = (words: ReadonlyArray<Word>): Pattern => {
  const vanishes = words.map(({ pattern, splits }) => splits && pattern.startsWith("*"))
  const first = vanishes.indexOf(false)
  return compile(
    words.map(({ pattern }, index) => (vanishes[index] === true || index <= first ? pattern : ` ${pattern}`)).join("")
  )
}

/** How many words of a command are checked as the beginning of another command. */
const maximumBeginnings = 64
/** How many options and values may precede the subcommand. */
const maximumOptions = 32

/** The command without leading options and their values: `git push` of `git -C folder push`. */
const withoutOptions = (words: ReadonlyArray<Word>): ReadonlyArray<string> => {
  const [first, ...rest] = words
  if (first === undefined) return []
  const reached = new Set([0])
  for (const at of reached) {
    if (at < maximumOptions && rest[at]?.text.startsWith("-")) reached.add(at + 1).add(at + 2)
  }
  return [...reached].map((at) => [baseName(first.text), ...rest.slice(at).map(({ text }) => text)].join(" "))
}

/** The text from each word to the end, with and without the folder of the name: what a wrapper may run. */
const beginnings = (words: ReadonlyArray<Word>): ReadonlyArray<string> => {
  const all = plain(words)
  let from = 0
  return words.slice(0, maximumBeginnings).flatMap(({ text }) => {
    const begin = from
    from += text.length + 1
    // A wrapper may append words, so each text is also tried with a trailing space, for rules that end in a space and a
    // star.
    return [all.slice(begin), all.slice(begin + text.lastIndexOf("/") + 1)].flatMap((each) => [each, `${each} `])
  })
}

/** Separates the words of a text, which an unknown program may run as a script, and the names of a path. */
const separators = /[\s"'`;|&(){}[\]=!,:/\\]+/g

/** The text from each of its words to the end: `rm x` of `system("rm x")`. */
const mentions = (text: string): ReadonlyArray<string> =>
  [...text.matchAll(separators)].map(({ 0: found, index }) => `${text.slice(index + found.length)} `)

/** Which rules to consult: all, those that do not match every command, or those that fix how the command begins. */
type Which = "all" | "particular" | "beginning"

/** The verdict of the last rule that matches. */
const said = ({ list }: Rules, text: string, which: Which): Verdict | undefined =>
  list.find(
    ({ pattern }) =>
      (which === "all" || (which === "particular" ? !pattern.universal : pattern.prefix !== "")) && test(pattern, text)
  )?.verdict

const deepest = 4
/** Wrappers within wrappers. */
const deepestWrapper = 16
const looksLikeScript = /[\s;&|$`(<>]/

/** Scripts in the words and inputs of a command that runs something. */
const scriptsIn = ({ redirects, words }: SimpleCommand): ReadonlyArray<string> => [
  ...words.slice(1).flatMap(({ unquoted: text }) => {
    if (!looksLikeScript.test(text)) return []
    const value = text.slice(text.indexOf("=") + 1)
    // `git` marks a shell command with `!`; `printf` turns `\\n` into line breaks.
    const attached = /^-[A-Za-z]/.test(text) ? [text.slice(2)] : []
    return [text, ...attached, ...(value === text ? [] : [value])].map((each) =>
      each.replace(/^!/, "").replaceAll("\\n", "\n")
    )
  }),
  ...(words.length > 2 ? [joined(words.slice(1))] : []),
  ...redirects.flatMap(({ input }) => (input === undefined ? [] : [input]))
]

interface Judge {
  readonly grammar: Grammar
  readonly rules: Rules
  readonly approvals: Rules
  /** The line contains a command that executes its input. */
  readonly feeds: boolean
}

/** Whether a rule denies the command, or a command hidden in it. */
const isDenied = (judge: Judge, command: SimpleCommand, depth = 0): boolean => {
  const { rules } = judge
  if (command.words.length === 0) return false
  const denies = (text: string, which: Which) => said(rules, text, which) === "deny"
  if (denies(apart(command.words), "all")) return true
  const texts = [...textsOf(command), plain(command.words), ...withoutOptions(command.words)]
  if (texts.some((text) => denies(text, "particular"))) return true
  const speaks = judge.feeds && /^(?:echo|printf|cat)$/.test(nameOf(command))
  const runs = speaks || isWrapper(command) || hazardsOf(command).some(({ hides }) => hides)
  return runs && holdsDenied(judge, command, depth)
}

/** Whether the words or scripts of a command contain a command that a rule denies. */
const holdsDenied = (judge: Judge, command: SimpleCommand, depth: number): boolean =>
  beginnings(command.words.slice(1)).some((text) => said(judge.rules, text, "beginning") === "deny") ||
  (depth < deepest &&
    scriptsIn(command).some((text) => {
      const line = readCommandLine(judge.grammar, text)
      return "commands" in line && line.commands.some((each) => isDenied(judge, each, depth + 1))
    }))

const command = (words: ReadonlyArray<Word>): SimpleCommand => ({
  words,
  assignments: [],
  redirects: [],
  source: plain(words),
  substitutions: [],
  defined: false
})

/** What a wrapper runs, with the hazards of the wrapper and of the command that it runs. */
type Ran = { readonly commands: ReadonlyArray<SimpleCommand>; readonly hazards: ReadonlyArray<Hazard> }

const nothing: Ran = { commands: [], hazards: [] }

const ranBy = (grammar: Grammar, wrapper: SimpleCommand, depth: number): Ran => {
  if (!isWrapper(wrapper)) return nothing
  const { commands, more, scripts, startup } = innerOf(wrapper)
  const lines = depth < deepest ? scripts.map((text) => readCommandLine(grammar, text)) : []
  const read = lines.flatMap((line) => ("commands" in line && line.loose.length === 0 ? [line.commands] : []))
  if (!more && depth < deepestWrapper && read.length === scripts.length) {
    const what = `${nameOf(wrapper)} also runs the files of its start`
    const hazards = startup === undefined ? [] : [{ what, name: startup, hides: true }]
    return { commands: [...commands.map(command), ...read.flat()], hazards }
  }
  const hides =
    depth >= deepestWrapper ||
    wrapper.words.length > maximumBeginnings ||
    isReader(wrapper) ||
    isShell(wrapper) ||
    read.length < scripts.length ||
    wrapper.words.some(({ fixed }) => !fixed)
  return { commands: [], hazards: [{ what: `what ${nameOf(wrapper)} runs cannot be seen`, hides }] }
}

/** Whether a rule names a wrapper together with the commands that it runs. */
const spells = ({ pattern }: CommandRule, wrapper: SimpleCommand, inner: ReadonlyArray<SimpleCommand>): boolean =>
  inner.every(({ words: [first] }) => {
    const at = first === undefined ? -1 : wrapper.words.indexOf(first)
    return at >= 0 && `${pattern.prefix} `.startsWith(`${apart(wrapper.words.slice(0, at + 1))} `)
  })

/** Whether the program is unknown: it may run its arguments. */
const mayRunWords = (given: SimpleCommand): boolean => nameOf(given) !== "git" && !isHarmless(nameOf(given))

/** Whether the words of an unknown program, or a text in them, contain a denied command. */
const mayRunDenied = (judge: Judge, given: SimpleCommand): boolean =>
  given.words.length > maximumBeginnings ||
  holdsDenied(judge, given, 0) ||
  [...given.words.slice(1).map(({ text }) => text), ...given.redirects.map(({ input = "" }) => input)]
    .flatMap(mentions)
    .some((text) => said(judge.rules, text, "beginning") === "deny")

/** Whether the rules allow the command and everything that it runs. */
const isAllowed = (judge: Judge, rules: Rules, given: SimpleCommand, depth: number): boolean => {
  const { commands: inner, hazards: ran } = ranBy(judge.grammar, given, depth)
  const own = [...hazardsOf(given), ...ran]
  if (own.length === 0 && (given.words.length === 0 || given.defined)) return true
  const texts = textsOf(given)
  const others = [plain(given.words), ...withoutOptions(given.words)]
  if (!rules.open && others.length > maximumOptions) return false
  const dynamic = given.words.some(({ fixed }) => !fixed) ? patternOf(given.words) : undefined
  for (const rule of rules.list) {
    const { pattern, verdict } = rule
    const matched = texts.some((text) => test(pattern, text))
    if (verdict !== "allow") {
      if (matched || others.some((text) => test(pattern, text))) return false
      if (dynamic !== undefined && meet(pattern, dynamic)) return false
    } else if (matched) {
      if (pattern.universal && !rules.open && mayRunWords(given) && mayRunDenied(judge, given)) return false
      const spelled = pattern.literal === given.source || (inner.length > 0 && spells(rule, given, inner))
      const hazards = spelled ? [...own, ...inner.flatMap(hazardsOf)] : own
      const named = hazards.every((hazard) => names(rules, rule, hazard, given.source))
      if (named && (spelled || inner.every((each) => isPermitted(judge, each, depth + 1)))) return true
    }
  }
  return false
}

const isPermitted = (judge: Judge, given: SimpleCommand, depth = 0): boolean =>
  isAllowed(judge, judge.rules, given, depth) || isAllowed(judge, judge.approvals, given, depth)

/** Only a rule that allows all commands allows the parts outside commands. */
const allowsLoose = ({ list, open }: Rules, { loose }: ReadLine): boolean =>
  loose.every(({ hides }) => !hides || open) &&
  (loose.length === 0 || list.some(({ pattern, verdict }) => pattern.universal && verdict === "allow"))

const isAllowedLine = (judge: Judge, line: CommandLine): boolean => {
  const either = [judge.rules, judge.approvals]
  if (!("commands" in line)) return either.some(({ open }) => open)
  return (
    line.commands.some(({ words }) => words.length > 0) &&
    either.some((rules) => allowsLoose(rules, line)) &&
    line.commands.every((each) => isPermitted(judge, each))
  )
}

interface CommandRulesOptions {
  readonly grammar: Grammar
  readonly permission: string
  readonly rules: ReadonlyArray<Rule>
  /** Saved approvals; they answer what the rules ask about. */
  readonly approvals: ReadonlyArray<Approval>
}

const commandsOf = (line: CommandLine) => ("commands" in line ? line.commands : [])

const judgeOf = (options: CommandRulesOptions, line: CommandLine): Judge => ({
  grammar: options.grammar,
  rules: rulesOf(options.rules, options.permission),
  approvals: rulesOf(
    options.approvals.map((each): Rule => ({ ...each, verdict: "allow" })),
    options.permission
  ),
  feeds: commandsOf(line).some((each) => executesInput(each))
})

const mostReasons = 5
const quoted = (text: string) => JSON.stringify(text.length <= 100 ? text : `${text.slice(0, 100)}...`)

/**
 * Why a line is asked about, if the line alone does not show it: which of its commands no rule allows, and what hazards
 * a command has. One text per reason, without newlines (BR-13).
 */
export const whyAsked = (options: CommandRulesOptions, line: CommandLine): ReadonlyArray<string> => {
  if (!("commands" in line)) return [`the line cannot be judged by its commands: ${line.unread}`]
  const judge = judgeOf(options, line)
  const open = line.commands.filter((each) => !isPermitted(judge, each))
  const all = open.length === line.commands.length
  const reasons = [
    ...open.flatMap((each) => {
      const hazards = hazardsOf(each).map(({ what }) => what)
      if (hazards.length > 0) return [`${quoted(each.source)}: ${hazards.join(", ")}`]
      return all ? [] : [`no rule allows ${quoted(each.source)}`]
    }),
    ...line.loose.map(({ what }) => what)
  ]
  const rest = reasons.length - mostReasons
  return rest <= 0 ? reasons : [...reasons.slice(0, mostReasons), `and ${rest} more`]
}

export const lineVerdict = (options: CommandRulesOptions, line: CommandLine): Verdict => {
  const commands = commandsOf(line)
  const judge = judgeOf(options, line)
  const { approvals, rules } = judge
  const written = rules.list.find(({ pattern }) => test(pattern, line.text))
  // A rule for every command does not decide about a line whose commands are judged one by one.
  const speaks = written !== undefined && !(written.pattern.universal && commands.length > 0)
  if (speaks && written.verdict === "deny") return "deny"
  if (commands.some((each) => isDenied(judge, each))) return "deny"
  const exact = [...(written?.verdict === "allow" ? [written] : []), ...approvals.list]
  if (exact.some(({ pattern }) => pattern.literal === line.text)) return "allow"
  if (speaks && written.verdict === "ask") return "ask"
  return isAllowedLine(judge, line) ? "allow" : "ask"
}

// Judges a command line of a shell whose earlier lines may have changed what a line means.

const changing = new Set(
  (
    "alias bind compgen complete compopt declare enable export fc getopts hash let local mapfile printf read readarray " +
    "readonly set shopt test trap typeset unalias unset wait ["
  ).split(" ")
)

/** Commands that execute text or a file in their own shell, or replace it. */
const executing = new Set([".", "coproc", "exec", "source"])

/** Commands that run another one in their own shell. */
const around = new Set(["builtin", "command", "eval", "time"])

/** A redirection that sets a variable, as `{name}>` does. */
const setsVariable = ({ redirects }: SimpleCommand): boolean =>
  redirects.some(({ harmless, text }) => !harmless && (text.startsWith("{}") || text.startsWith("<<")))

const changes = (grammar: Grammar, given: SimpleCommand, depth: number): boolean => {
  const [first] = given.words
  const name = nameOf(given)
  if (setsVariable(given)) return true
  if (first === undefined) return hazardsOf(given).some(({ hides }) => hides)
  if (!first.fixed || executing.has(name)) return true
  if (changing.has(name)) return hazardsOf(bareCommand(given.words)).length > 0
  if (!around.has(name)) return false
  if (depth >= deepest) return true
  const { commands, more, scripts } = innerOf(given)
  return (
    more ||
    commands.some((words) => changes(grammar, bareCommand(words), depth + 1)) ||
    scripts.some((text) => lineChanges(grammar, readCommandLine(grammar, text), depth + 1))
  )
}

const lineChanges = (grammar: Grammar, line: CommandLine, depth: number): boolean =>
  "unread" in line ||
  line.defines.length > 0 ||
  line.loose.some(({ hides }) => hides) ||
  line.commands.some((each) => changes(grammar, each, depth))

/**
 * Whether the line may change what later lines of its shell mean: it defines a name, sets a powerful or exported
 * variable, or executes what cannot be seen. Any doubt counts. Only the shell itself can change its state, so that
 * programs count for nothing.
 */
export const changesShell = (grammar: Grammar, line: CommandLine): boolean => lineChanges(grammar, line, 0)

/**
 * The verdict on a line in a shell where the lines `before` ran. It is allowed only if it would be without them, and if
 * one line with all of them would be: what a name means now was allowed too, and not only answered once. An approval
 * that was given in this state of the shell allows the line itself.
 */
export const verdictAfter = (options: CommandRulesOptions, before: string, line: CommandLine): Verdict => {
  const alone = lineVerdict(options, line)
  if (before === "" || alone !== "allow") return alone
  const restricting = options.rules.filter(({ verdict }) => verdict !== "allow")
  if (lineVerdict({ ...options, rules: restricting }, line) === "allow") return "allow"
  // The empty line ends a continued one.
  const together = readCommandLine(options.grammar, `${before}\n\n${line.text}`)
  return lineVerdict(options, together) === "allow" ? "allow" : "ask"
}
