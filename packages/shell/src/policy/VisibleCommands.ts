/**
 * Lists the commands that a line runs, as far as the line shows them: also those within wrappers such as `sudo`, within
 * substitutions and within fixed scripts. Names what it hides. Uses the parser of permissions. Pure. Spec: SL-50,
 * SL-51, SL-55, SL-191 in specs/shell.md.
 */
import * as grammar from "unbash"
import type { SyntaxNode } from "unbash"
import { evaluatesText } from "@daybook/core/permission/CommandHazards"
import {
  bareCommand,
  fixedWord,
  type Grammar,
  readCommandLine,
  type SimpleCommand,
  type Word
} from "@daybook/core/permission/CommandLine"
import { isHarmless } from "@daybook/core/permission/CommandOptions"
import { baseName, innerOf, isShell, isShellName, isWrapper, nameOf } from "@daybook/core/permission/CommandWrappers"

// Whether a person who types a command has to go on: a quote, a here-document, a group or a list is open, or the line
// ends with a backslash.

/** A longer text is complete: no person types it, and parsing takes quadratic time in the number of here-documents. */
const longest = 16_384

const hasOpenHereDocument = (grammar: Grammar, node: SyntaxNode): boolean => {
  if (node.type === "HereDoc" && node.closing === undefined) return true
  let open = false
  grammar.forEachChild(node, (child) => {
    open ||= hasOpenHereDocument(grammar, child)
  })
  return open
}

export const isUnfinished = (grammar: Grammar, text: string): boolean => {
  if (text.length > longest) return false
  const script = grammar.parse(text)
  const { commands, errors = [] } = script
  // In a comment, a backslash is one of its characters.
  const last = commands.at(-1)
  if (/(?:^|[^\\])(?:\\\\)*\\$/.test(text) && last !== undefined && last.end === text.length) return true
  if (errors.some(({ message }) => message.startsWith("unexpected"))) return false
  const end = text.trimEnd().length
  if (errors.some(({ message, pos }) => message.startsWith("unterminated") || pos >= end)) return true
  return errors.length === 0 && hasOpenHereDocument(grammar, script)
}

/** A command with a name that is certain. */
export interface VisibleCommand {
  /** Without the folder. */
  readonly name: string
  /** The words after quote removal; a word that only the shell can expand stays as written. */
  readonly words: ReadonlyArray<string>
  /** It is a shell or evaluates text, and the line does not show all that it executes. */
  readonly executesUnseen: boolean
}

export interface VisibleLine {
  readonly commands: ReadonlyArray<VisibleCommand>
  /** Why commands may run that are not listed. */
  readonly hidden: ReadonlyArray<string>
  /** Commands that may run: of a wrapper's arguments, of unseen text, of a line that cannot be parsed. */
  readonly possible: ReadonlyArray<ReadonlyArray<string>>
}

interface CommandCollection {
  readonly commands: Array<VisibleCommand>
  readonly hidden: Array<string>
  readonly possible: Array<ReadonlyArray<string>>
  /** Texts that the commands print or read. */
  readonly texts: Array<string>
  /** Shared by all that is found in a line. */
  readonly left: { lines: number }
}

const nothing = (left: CommandCollection["left"]): CommandCollection => ({
  commands: [],
  hidden: [],
  possible: [],
  texts: [],
  left
})

const deepest = 8

/** Texts of a line that are parsed as lines. */
const mostLines = 500

/** Words of a wrapper with options that are taken for a command's name. */
const mostBeginnings = 256

/** Variables that change what the names of later commands mean, or that run commands. */
const meaning =
  /^(?:PATH|LD_\w+|DYLD_\w+|BASH_(?:ALIASES|CMDS|ENV|FUNC_\w+|LOADABLES_PATH)|PROMPT_COMMAND|SHELLOPTS|BASHOPTS|IFS|PS[0-4])$/

const assigning = new Set("declare export getopts local mapfile printf read readarray readonly typeset wait".split(" "))

const assigned = ({ assignments, words }: SimpleCommand): ReadonlyArray<string> => [
  ...assignments.map(({ name }) => name),
  ...(assigning.has(nameOf({ words })) ? words.slice(1).map(({ text }) => /^(?:-v)?(\w*)/.exec(text)?.[1] ?? "") : [])
]

const evaluators = new Set(["eval", "source", "."])

const textsOf = (words: ReadonlyArray<Word>): ReadonlyArray<string> => words.map(({ text }) => text)

/** What a command that reads a script gets from here-documents; none if its input is anything else. */
const inputsOf = ({ redirects }: SimpleCommand): ReadonlyArray<{ readonly input: string; readonly fixed: boolean }> =>
  redirects.flatMap(({ fixed, input }) => (input === undefined ? [] : [{ input, fixed }]))

/** What a command prints of its arguments, and what it is given to read. */
const saidBy = (command: SimpleCommand): ReadonlyArray<string> => {
  const inputs = inputsOf(command).map(({ input }) => input)
  if (!/^(?:echo|printf)$/.test(nameOf(command))) return inputs
  const words = command.words.slice(1).map(({ unquoted }) => unquoted.replaceAll("\\n", "\n"))
  const texts = words.slice(words.findIndex((text) => !/^-[eEn]+$/.test(text)))
  return [...inputs, texts.join(" "), ...(texts.length > 1 ? texts : [])]
}

/** Whether a wrapper with options has the name of a shell among its arguments. */
const namesShell = ({ words }: SimpleCommand): boolean => words.some(({ text }) => isShellName(text))

const looksLikeScript = /[\s;&|$`(<>]/

/** Adds what a text runs, if it is executed, to what may run. */
const takePossible = (found: CommandCollection, take: (within: CommandCollection) => void): void => {
  const within = nothing(found.left)
  take(within)
  for (const { words } of within.commands) found.possible.push(words)
  found.possible.push(...within.possible)
}

/** Shells among the arguments of a program that is not known to ignore them. */
const takeShellsIn = (found: CommandCollection, { words }: SimpleCommand, depth: number): void => {
  for (const [from, word] of words.slice(0, mostBeginnings).entries()) {
    if (from === 0 || !isShellName(word.text)) continue
    const { scripts } = innerOf(bareCommand(words.slice(from)))
    for (const text of scripts) takePossible(found, (within) => takeLine(within, text, depth + 1))
  }
}

/** Commands that may begin at any word of a wrapper. */
const takeBeginnings = (found: CommandCollection, command: SimpleCommand, depth: number): void => {
  const words = textsOf(command.words)
  const end = Math.min(words.length, mostBeginnings)
  for (let from = 1; from < end; from++) found.possible.push(words.slice(from))
  takeShellsIn(found, command, depth)
}

/**
 * Takes what a wrapper runs. `within`: it is an argument of another wrapper, whose beginnings are taken. Whether it executes
 * text that the line does not show.
 */
const takeInner = (found: CommandCollection, command: SimpleCommand, depth: number, within: boolean): boolean => {
  const name = nameOf(command)
  const { commands, guessed, more, reads, scripts, startup, unseen } = innerOf(command)
  const inside = within || more
  for (const words of commands) takeCommand(found, { ...command, words, assignments: [] }, depth + 1, inside)
  for (const text of scripts) takeLine(found, text, depth + 1)
  if (startup !== undefined) found.hidden.push(`${name} runs the files of its start, because of ${startup}`)
  const inputs = reads ? inputsOf(command) : []
  for (const { input } of inputs) takeLine(found, input, depth + 1)
  if (inputs.length > 0 && inputs.every(({ fixed }) => fixed)) return false
  if (!more) return false
  found.hidden.push(`${name} may run a command that the line does not show`)
  if (!within) takeBeginnings(found, command, depth)
  if (!guessed) return unseen
  for (const { unquoted } of command.words.slice(1)) {
    if (looksLikeScript.test(unquoted)) takePossible(found, (within) => takeLine(within, unquoted, depth + 1))
  }
  return unseen || isShell(command) || evaluators.has(name) || namesShell(command)
}

const takeCommand = (found: CommandCollection, command: SimpleCommand, depth: number, within = false): void => {
  const changed = assigned(command).find((name) => meaning.test(name))
  if (changed !== undefined) found.hidden.push(`${changed} changes what the names of commands mean`)
  found.texts.push(...saidBy(command))
  const [first] = command.words
  if (first === undefined || command.defined) return
  if (!first.fixed) {
    found.hidden.push("the name of a command is only known when it runs")
    return
  }
  if (depth > deepest) {
    found.hidden.push("the line is too deep")
    return
  }
  const name = nameOf(command)
  if (evaluatesText(command)) found.hidden.push(`${name} may run a command that the line does not show`)
  const executesUnseen = isWrapper(command) && takeInner(found, command, depth, within)
  if (!isWrapper(command) && !isHarmless(name)) takeShellsIn(found, command, depth)
  found.commands.push({ name, words: textsOf(command.words), executesUnseen })
}

/** Characters without a meaning of their own in any place of a line. Most commands have no others. */
const plain = /^\w[\w./-]*(?: [\w./:,@+-]+)*$/
const longestPlain = 1_024

/** Words that are no command's name where a name can be. */
const reserved = new Set(
  "case coproc do done elif else esac fi for function if in select then time until while".split(" ")
)

/** What the parser would return for one command of plain words; undefined if the line is anything else. */
const plainCommand = (text: string): SimpleCommand | undefined => {
  if (text.length > longestPlain || !plain.test(text)) return undefined
  const words = text.split(" ").map(fixedWord)
  return reserved.has(words[0]?.text ?? "") ? undefined : { ...bareCommand(words), source: text }
}

const takeLine = (found: CommandCollection, text: string, depth: number): void => {
  if (found.left.lines <= 0) {
    found.hidden.push(`the line has more than ${mostLines} texts that may be commands`)
    return
  }
  found.left.lines -= 1
  const command = plainCommand(text)
  if (command !== undefined) return takeCommand(found, command, depth)
  const line = readCommandLine(grammar, text)
  if ("unread" in line) {
    found.hidden.push(`the line cannot be judged: ${line.unread}`)
    for (const segment of text.split(/[;|&\n]+/)) {
      const words = segment.replaceAll(/["'\\]/g, "").split(/\s+/)
      const from = words.findIndex((word) => word !== "" && !/^\w+=/.test(word))
      if (from < 0) continue
      const command = bareCommand(words.slice(from).map(fixedWord))
      found.possible.push(textsOf(command.words))
      if (isWrapper(command)) takeBeginnings(found, command, depth)
    }
    return
  }
  for (const { hides, what } of line.loose) if (hides) found.hidden.push(what)
  for (const each of line.commands) takeCommand(found, each, depth)
}

export const visibleCommands = (text: string): VisibleLine => {
  const found = nothing({ lines: mostLines })
  takeLine(found, text, 0)
  if (found.commands.some(({ executesUnseen }) => executesUnseen)) {
    for (const said of new Set(found.texts)) takePossible(found, (within) => takeLine(within, said, 1))
  }
  return { commands: found.commands, hidden: found.hidden, possible: found.possible }
}

// Commands that a policy refuses although no list names them, by names and words: `echo dd` is fine.

const ending = new Set("halt poweroff reboot shutdown".split(" "))
const downloading = new Set("curl fetch wget".split(" "))

const isOption = (word: string, letter: RegExp, long: string): boolean =>
  word.startsWith("--") ? word.length > 3 && long.startsWith(word) : word.startsWith("-") && letter.test(word)

/** Why the command is dangerous; undefined if it is not. */
const dangerOf = (words: ReadonlyArray<string>): string | undefined => {
  const name = baseName(words[0] ?? "")
  const end = words.indexOf("--")
  const options = words.slice(1, end < 0 ? undefined : end)
  const has = (letter: RegExp, long: string) => options.some((word) => isOption(word, letter, long))
  if (name === "rm" && has(/[rR]/, "--recursive") && has(/f/, "--force")) return "forced recursive removal"
  if (name === "dd" || /^mkfs(?:\.|$)/.test(name)) return `${name} overwrites disks`
  if (ending.has(name)) return `${name} ends the system`
  if (name === "systemctl" && options.some((word) => ending.has(word))) return "systemctl ends the system"
  if ((name === "init" || name === "telinit") && /^[06]$/.test(words[1] ?? "")) return `${name} ends the system`
  return undefined
}

/** Why a line is dangerous; undefined if nothing of it is. */
export const danger = ({ commands, possible }: VisibleLine): string | undefined => {
  const downloads = commands.some(({ name }) => downloading.has(name))
  if (downloads && commands.some(({ executesUnseen }) => executesUnseen)) return "a shell executes what is downloaded"
  for (const words of [...commands.map((command) => command.words), ...possible]) {
    const found = dangerOf(words)
    if (found !== undefined) return found
  }
  return undefined
}
