/**
 * Judges a line of a shell that has run others: finds the lines that may change what later ones mean, and gives the
 * verdict on a line after them. Pure. Spec: BR-20, BR-21 in specs/tools.md.
 */
import type { Verdict } from "../domain/Rule.ts"
import { hazardsOf } from "./CommandHazards.ts"
import { type CommandLine, type Grammar, readCommandLine, type SimpleCommand, type Word } from "./CommandLine.ts"
import { type CommandRulesOptions, lineVerdict } from "./CommandRules.ts"
import { innerOf, nameOf } from "./CommandWrappers.ts"

/** Commands whose only hazards are what they do to their own shell. */
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

const deepest = 4

const command = (words: ReadonlyArray<Word>): SimpleCommand => ({
  words,
  assignments: [],
  redirects: [],
  source: "",
  substitutions: [],
  defined: false
})

/** A redirection that sets a variable, as `{name}>` does. */
const setsVariable = ({ redirects }: SimpleCommand): boolean =>
  redirects.some(({ harmless, text }) => !harmless && (text.startsWith("{}") || text.startsWith("<<")))

const changes = (grammar: Grammar, given: SimpleCommand, depth: number): boolean => {
  const [first] = given.words
  const name = nameOf(given)
  if (setsVariable(given)) return true
  if (first === undefined) return hazardsOf(given).some(({ hides }) => hides)
  if (!first.fixed || executing.has(name)) return true
  if (changing.has(name)) return hazardsOf(command(given.words)).length > 0
  if (!around.has(name)) return false
  if (depth >= deepest) return true
  const { commands, more, scripts } = innerOf(given)
  return (
    more ||
    commands.some((words) => changes(grammar, command(words), depth + 1)) ||
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
