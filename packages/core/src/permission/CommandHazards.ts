/**
 * Finds what a simple command may do beyond its name: run other commands, write files, change what later names mean. A
 * rule must name such a hazard, or a person is asked. Pure. Spec: BR-4..BR-9, BR-14, BR-15.
 */
import type { SimpleCommand, Word } from "./CommandLine.ts"
import { isHarmless, readsProgram, takesWords, writesOrRuns } from "./CommandOptions.ts"
import { harmlessVariable, isWrapper, nameOf } from "./CommandWrappers.ts"

/** One reason to ask. */
export interface Hazard {
  readonly what: string
  /** The text that a rule must contain outside its wildcards. Absent: only a rule for this exact command. */
  readonly name?: string
  /** It may run a command that is not visible in the line. */
  readonly hides: boolean
}

/** Variables that, set for the rest of the line, change what a name means or what programs run. */
const powerfulVariable = new RegExp(
  "(?:PATH|OPTIONS|OPTS?|FLAGS|COMMAND|CMD|EDITOR|VISUAL|PAGER|SHELL|RSH|ASKPASS|PRELOAD|HOME|WRAPPER|BROWSER|CONFIG" +
    "|[Pp][Rr][Oo][Xx][Yy])$|^(?:IFS|ENV|PS\\d|CC|CXX|LD|AR|SHELLOPTS|GLOBIGNORE|S?RANDOM|OPTIND|HISTCMD)$" +
    "|^(?:LD_|DYLD_|GIT_|BASH|npm_|NPM_|NODE_|PYTHON|PERL|RUBY|JAVA|LESS|MAN|SSH_|XDG_|CARGO|RUST|GO|DOCKER|MAKE|TAR_)"
)

const declaring = new Set("declare export getopts local mapfile read readarray readonly typeset".split(" "))

/** Commands that change what later commands of the line mean, or that evaluate text. */
const changing = new Set("alias bind compgen complete enable fc hash let shopt trap unalias unset".split(" "))

/** Shell options that change neither the meaning of words nor the environment of children. */
const plainSetting = /^(?:[-+][BCETbefhmntuvx]*o?|--|errexit|noglob|nounset|pipefail|verbose|xtrace)$/

const run = (what: string, name?: string): Hazard => ({ what, hides: true, ...(name === undefined ? {} : { name }) })
const act = (what: string, name: string): Hazard => ({ what, hides: false, name })

const ofAssignments = ({ assignments, words }: SimpleCommand): ReadonlyArray<Hazard> =>
  assignments.flatMap(({ name }) =>
    (words.length > 0 ? !harmlessVariable.test(name) : powerfulVariable.test(name))
      ? [run(`it sets ${name}`, `${name}=`)]
      : []
  )

const ofName = (word: Word): ReadonlyArray<Hazard> =>
  !word.fixed || word.text === "" || /^[~-]|\s/.test(word.text)
    ? [run("the name of the command is only known when it runs")]
    : []

const declared = (word: Word): string => /^[\w]*/.exec(word.text)?.[0] ?? ""

/** Options that make an assignment or a call evaluate text. */
const evaluating = (name: string): RegExp =>
  name === "mapfile" || name === "readarray" ? /^-\w*C/ : name === "read" ? /^$/ : /^[-+]\w*[Ain]/

/** The number of words of `set` that are settings; `--` ends them. */
const settings = (words: ReadonlyArray<Word>): number => {
  const end = words.findIndex(({ fixed, text }) => fixed && (text === "--" || text === "-"))
  return end < 0 ? words.length : end
}

const binaryOperator = /^(?:==?|!=|<|>|-(?:eq|ne|lt|le|gt|ge|nt|ot|ef|a|o))$/
const operator = /^(?:==?|!=|<|>|-[a-zA-Z]|-[a-z]{2})$/

/** A parameter that is a number, or empty. */
const isNumber = (text: string): boolean => /^\$[#?$!]$/.test(text)

/** Whether a builtin takes, or may take at run time, a variable's name, which can contain a subscript. */
const namesVariable = (name: string, words: ReadonlyArray<Word>): boolean => {
  if (name === "wait") return words.some(({ fixed, text }) => !fixed || /^-\w*p/.test(text))
  if (name === "printf") return words.some(({ fixed, text }) => !fixed || text.startsWith("-v"))
  if (name !== "test" && name !== "[") return false
  const operands = name === "[" ? words.slice(0, -1) : words
  return operands.some(
    ({ fixed, splits, text }, index) =>
      text.startsWith("-v") ||
      (splits && !isNumber(text)) ||
      // A variable's value is an operator only before an operand, and not after another operator.
      (!fixed &&
        index + 1 < operands.length &&
        !binaryOperator.test(operands[index + 1]?.text ?? "") &&
        !operator.test(operands[index - 1]?.text ?? ""))
  )
}

const ofBuiltin = (name: string, words: ReadonlyArray<Word>): ReadonlyArray<Hazard> => {
  if (changing.has(name)) return [run(`${name} changes what commands mean`, name)]
  if (declaring.has(name)) {
    const exports = name === "export" || words.some(({ text }) => /^[-+]\w*x/.test(text))
    const bad = words.find(
      (word) =>
        !word.fixed ||
        word.text.includes("[") ||
        evaluating(name).test(word.text) ||
        powerfulVariable.test(declared(word)) ||
        (exports && !/^[-+]/.test(word.text) && !harmlessVariable.test(declared(word)))
    )
    return bad === undefined ? [] : [run(`${name} sets ${bad.text}`, bad.text.replace(/=[^]*$/, "="))]
  }
  if (name === "set") {
    const bad = words.slice(0, settings(words)).find(({ fixed, text }) => !fixed || !plainSetting.test(text))
    return bad === undefined ? [] : [run(`set ${bad.text} changes what commands mean`, bad.text)]
  }
  return namesVariable(name, words) ? [run(`${name} evaluates a variable's name`, name === "wait" ? "-p" : "-v")] : []
}

/** Commands that give names another meaning, load builtins, or evaluate their arguments. */
const redefining = new Set("bind compgen complete compopt enable fc hash let".split(" "))

/** Letters of options of a builtin whose value is the next word. */
const valued: Readonly<Record<string, RegExp>> = {
  mapfile: /^-\w*[Ocdnsu]$/,
  read: /^-\w*[Ndinptu]$/,
  readarray: /^-\w*[Ocdnsu]$/
}

/**
 * Whether a builtin runs commands in a way that its name does not show: it evaluates a word as a variable with a subscript,
 * as arithmetic or as a reference, or gives names another meaning.
 */
export const evaluatesText = ({ words: [first, ...words] }: Pick<SimpleCommand, "words">): boolean => {
  const name = first?.text ?? ""
  if (redefining.has(name)) return true
  const isName = ({ text }: Word) => /^\w+(?:\+?=|$)/.test(text)
  if (name === "printf") {
    const [option, variable] = words
    if (option === undefined || option.text === "-v") return variable !== undefined && !isName(variable)
    return option.option || (option.text.startsWith("-v") && !/^-v\w+$/.test(option.text))
  }
  if (name === "unset") return words.some((word) => !word.text.startsWith("-") && !isName(word))
  if (!declaring.has(name)) return namesVariable(name, words)
  const names = words.filter((_, index) => valued[name]?.test(words[index - 1]?.text ?? "") !== true)
  return names.some((word) =>
    // An associative array evaluates nothing by itself.
    /^(?:--|[-+]\w*)$/.test(word.text) ? evaluating(name).test(word.text.replaceAll("A", "")) : !isName(word)
  )
}

const ofOptions = (name: string, words: ReadonlyArray<Word>): ReadonlyArray<Hazard> =>
  isHarmless(name)
    ? []
    : words.flatMap((word, index): ReadonlyArray<Hazard> => {
        if (word.option) return [act(`${word.text} may become an option`, word.text)]
        if (!word.fixed)
          return takesWords(name, word) ? [run(`${word.text} is only known when it runs`, word.text)] : []
        const option = writesOrRuns(name, words, index)
        return option === undefined ? [] : [run(`${option} may run a command or write a file`, option)]
      })

/** The reasons to ask a person, unless a rule names them. */
export const hazardsOf = (command: SimpleCommand): ReadonlyArray<Hazard> => {
  const [first, ...rest] = command.words
  const name = nameOf(command)
  return [
    ...ofAssignments(command),
    ...command.substitutions.map((operator) => act("it has a substitution", operator)),
    ...command.redirects
      .filter(({ harmless }) => !harmless)
      .map(({ text }) => act("it is redirected to a file", /[<>&|]+/.exec(text)?.[0] ?? text)),
    ...(first === undefined ? [] : [...ofName(first), ...ofBuiltin(name, rest), ...ofOptions(name, rest)]),
    ...(readsProgram(name, rest) ? [run(`${name} runs its input`)] : []),
    ...(isWrapper(command) ? [act(`${name} runs another command`, first?.text ?? name)] : [])
  ]
}
