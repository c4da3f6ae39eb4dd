/**
 * Lists the commands that a line runs, as far as the line shows them: also those within wrappers such as `sudo`, within
 * substitutions and within fixed scripts. Names what it hides. Uses the parser of permissions. Pure. Spec: SL-50, SL-51.
 */
import * as grammar from "unbash"
import { baseName, innerOf, isReader, isShell, isWrapper, nameOf } from "@daybook/core/permission/CommandHazards"
import { fixedWord, readCommandLine, type SimpleCommand, type Word } from "@daybook/core/permission/CommandLine"

/** A command with a name that is certain. */
export interface VisibleCommand {
  /** Without the folder. */
  readonly name: string
  /** The words after quote removal; those that only the shell knows are as written. */
  readonly words: ReadonlyArray<string>
  /** It is a shell or evaluates text, and the line does not show what it executes. */
  readonly executesUnseen: boolean
}

export interface VisibleLine {
  readonly commands: ReadonlyArray<VisibleCommand>
  /** Why commands may run that are not listed. */
  readonly hidden: ReadonlyArray<string>
  /** Names in places where a command may be: of a wrapper's arguments, or of a line that cannot be parsed. */
  readonly possible: ReadonlyArray<ReadonlyArray<string>>
}

interface Found {
  readonly commands: Array<VisibleCommand>
  readonly hidden: Array<string>
  readonly possible: Array<ReadonlyArray<string>>
}

const deepest = 8

/** Variables that change what the names of later commands mean, or that run commands. */
const meaning = /^(?:PATH|LD_\w+|DYLD_\w+|BASH_ENV|PROMPT_COMMAND|BASH_FUNC_\w+|SHELLOPTS|BASHOPTS|IFS|PS[0-4])$/

const assigning = new Set("declare export local printf read readonly typeset".split(" "))

const assigned = ({ assignments, words }: SimpleCommand): ReadonlyArray<string> => [
  ...assignments.map(({ name }) => name),
  ...(assigning.has(words[0]?.text ?? "") ? words.slice(1).map(({ text }) => /^\w*/.exec(text)?.[0] ?? "") : [])
]

const evaluators = new Set(["eval", "source", "."])

const textsOf = (words: ReadonlyArray<Word>): ReadonlyArray<string> => words.map(({ text }) => text)

/** The scripts that a shell reads from here-documents; undefined if it reads anything else. */
const inputsOf = (command: SimpleCommand): ReadonlyArray<string> | undefined => {
  const inputs = command.redirects.flatMap(({ input }) => (input === undefined ? [] : [input]))
  const readsInput = isReader(command) && textsOf(command.words.slice(1)).every((text) => /^-s?$/.test(text))
  return readsInput && inputs.length > 0 ? inputs : undefined
}

const takeInner = (found: Found, command: SimpleCommand, depth: number): boolean => {
  const inner = innerOf(command)
  switch (inner.type) {
    case "commands":
      for (const words of inner.commands) takeCommand(found, { ...command, words, assignments: [] }, depth + 1)
      return false
    case "script":
      takeLine(found, inner.text, depth + 1)
      return false
    case "unknown": {
      const inputs = inputsOf(command)
      for (const input of inputs ?? []) takeLine(found, input, depth + 1)
      if (inputs !== undefined) return false
      found.hidden.push(`${nameOf(command)} may run a command that the line does not show`)
      const words = textsOf(command.words)
      for (let from = 1; from < words.length; from++) found.possible.push(words.slice(from))
      return true
    }
  }
}

const takeCommand = (found: Found, command: SimpleCommand, depth: number): void => {
  const changed = assigned(command).find((name) => meaning.test(name))
  if (changed !== undefined) found.hidden.push(`${changed} changes what the names of commands mean`)
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
  const isUnseen = isWrapper(command) && takeInner(found, command, depth)
  found.commands.push({
    name: nameOf(command),
    words: textsOf(command.words),
    executesUnseen: isUnseen && (isShell(command) || evaluators.has(nameOf(command)) || wrapsShell(command))
  })
}

/** Whether a wrapper with options has the name of a shell among its arguments. */
const wrapsShell = ({ words }: SimpleCommand): boolean =>
  words.some(({ text }) => /^(?:ash|bash|dash|ksh|sh|zsh)$/.test(baseName(text)))

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
  return reserved.has(words[0]?.text ?? "")
    ? undefined
    : { assignments: [], words, redirects: [], source: text, substitutions: [], defined: false }
}

const takeLine = (found: Found, text: string, depth: number): void => {
  const command = plainCommand(text)
  if (command !== undefined) return takeCommand(found, command, depth)
  const line = readCommandLine(grammar, text)
  if ("unread" in line) {
    found.hidden.push(`the line cannot be judged: ${line.unread}`)
    for (const segment of text.split(/[;|&\n]+/)) {
      const words = segment.replaceAll(/["'\\]/g, "").split(/\s+/)
      const from = words.findIndex((word) => word !== "" && !/^\w+=/.test(word))
      if (from >= 0) found.possible.push(words.slice(from))
    }
    return
  }
  for (const { hides, what } of line.loose) if (hides) found.hidden.push(what)
  for (const each of line.commands) takeCommand(found, each, depth)
}

export const visibleCommands = (text: string): VisibleLine => {
  const found: Found = { commands: [], hidden: [], possible: [] }
  takeLine(found, text, 0)
  return found
}
