/**
 * Finds what a simple command may do beyond its name: run other commands, write files, change what later names mean. A
 * rule must name such a hazard, or a person is asked. Pure. Spec: BR-4..BR-9, BR-14, BR-15.
 */
import type { SimpleCommand, Word } from "./CommandLine.ts"
import { isHarmless, readsProgram, takesWords, writesOrRuns } from "./CommandOptions.ts"

/** One reason to ask. */
export interface Hazard {
  readonly what: string
  /**
   * The text that a rule must contain outside its wildcards. Absent: only a rule for exactly this command allows it.
   */
  readonly name?: string
  /** It may run a command that is not visible in the line. */
  readonly hides: boolean
}

/** Commands that run a command in their arguments, or a script that they are given. */
const wrappers = new Set(
  (
    ". alias ash bash builtin bunx busybox bwrap chroot chrt command coproc csh dash doas doit entr env eval exec fakeroot " +
    "fish find firejail flock ionice ksh ltrace mksh nice nohup npx nsenter parallel pkexec pnpx prlimit proot runuser rush " +
    "rzsh script setarch setpriv setsid sh source ssh stdbuf strace su sudo systemd-run taskset tcsh time timeout toybox " +
    "trap unbuffer unshare uvx watch xargs zsh"
  ).split(" ")
)

const shells = new Set("ash bash csh dash fish ksh mksh sh tcsh zsh".split(" "))

/** Commands that execute their input. */
const readers = new Set([...shells, "xargs", "parallel", "source", ".", "busybox", "toybox"])

/** Variables that change nothing but a command's messages. */
const harmlessVariable =
  /^(?:LANG|LC_[A-Z]+|TZ|CI|NO_COLOR|FORCE_COLOR|CLICOLOR|COLUMNS|LINES|DEBUG|VERBOSE|NODE_ENV|LOG_LEVEL|RUST_LOG|RUST_BACKTRACE)$/

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

export const baseName = (name: string): string => name.slice(name.lastIndexOf("/") + 1)

export const nameOf = ({ words }: SimpleCommand): string => baseName(words[0]?.text ?? "")

export const isWrapper = (command: SimpleCommand): boolean => wrappers.has(nameOf(command))

export const isShell = (command: SimpleCommand): boolean => shells.has(nameOf(command))

export const isReader = (command: SimpleCommand): boolean => readers.has(nameOf(command))

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

/** Whether a builtin takes, or may take at run time, a variable's name, which can contain a subscript. */
const namesVariable = (name: string, words: ReadonlyArray<Word>): boolean => {
  if (name === "wait") return words.some(({ fixed, text }) => !fixed || /^-\w*p/.test(text))
  if (name === "printf") return words.some(({ fixed, text }) => !fixed || text.startsWith("-v"))
  if (name !== "test" && name !== "[") return false
  const operands = name === "[" ? words.slice(0, -1) : words
  return operands.some(
    ({ fixed, splits, text }, index) =>
      text.startsWith("-v") ||
      splits ||
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

const isOption = ({ text }: Word): boolean => text.startsWith("-") && text.length > 1

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

/** A word that another command appends at run time; it may be an option. */
const added: Word = { text: "...", fixed: false, pattern: "*", splits: true, option: true }

/** What a wrapper runs: commands as words, a script, or something that cannot be determined. */
export type Inner =
  | { readonly type: "commands"; readonly commands: ReadonlyArray<ReadonlyArray<Word>> }
  | { readonly type: "script"; readonly text: string }
  | { readonly type: "unknown" }

const unknown: Inner = { type: "unknown" }
const one = (words: ReadonlyArray<Word>): Inner =>
  words[0] === undefined || isOption(words[0]) ? unknown : { type: "commands", commands: [words] }

const script = (words: ReadonlyArray<Word>): Inner =>
  words.length > 0 && words.every(({ fixed }) => fixed)
    ? { type: "script", text: words.map(({ text }) => text).join(" ") }
    : unknown

/** The commands of `find`: from `-exec` and similar options to `;` or `+`. */
const found = (words: ReadonlyArray<Word>): Inner => {
  const commands: Array<ReadonlyArray<Word>> = []
  for (let from = 0; from < words.length; from++) {
    if (!/^-(?:exec|execdir|ok|okdir)$/.test(words[from]?.text ?? "")) continue
    const end = words.findIndex(({ text }, index) => index > from && (text === ";" || text === "+"))
    if (end < 0) return unknown
    commands.push(
      words
        .slice(from + 1, end)
        .map((word) => (word.text.includes("{}") && word.text !== "{}" ? { ...word, fixed: false } : word))
    )
    from = end
  }
  return { type: "commands", commands }
}

const plain = new Set(
  "bunx busybox builtin doas exec nice nohup npx pkexec pnpx setsid sudo time toybox uvx".split(" ")
)

/** What the wrapper runs, if its arguments have the simplest form. */
export const innerOf = (command: SimpleCommand): Inner => {
  const name = nameOf(command)
  const words = command.words.slice(1)
  const [first] = words
  if (words.some(({ splits }) => splits) && name !== "find") return unknown
  if (plain.has(name)) return one(words)
  if (shells.has(name) || name === "source" || name === ".") {
    if (shells.has(name) && first?.text === "-c" && words[1] !== undefined) return script([words[1]])
    // A script file is judged as a command by its path; a script from a descriptor is not visible.
    return /^(?:-$|\/dev\/|\/proc\/)/.test(first?.text ?? "-") ? unknown : one(words)
  }
  switch (name) {
    case "command":
      return /^-[vV]$/.test(first?.text ?? "") ? { type: "commands", commands: [] } : one(words)
    case "env": {
      const from = words.findIndex(({ text }) => !/^\w+=/.test(text))
      const set = from < 0 ? words : words.slice(0, from)
      if (!set.every(({ text }) => harmlessVariable.test(text.split("=", 1)[0] ?? ""))) return unknown
      return from < 0 ? { type: "commands", commands: [] } : one(words.slice(from))
    }
    case "eval":
      return script(words)
    case "find":
      return found(words)
    case "timeout":
      return /^\d+(?:\.\d+)?[smhd]?$/.test(first?.text ?? "") ? one(words.slice(1)) : unknown
    case "xargs":
      return one([...words, ...(words.length === 0 ? [] : [added])])
    default:
      return unknown
  }
}
