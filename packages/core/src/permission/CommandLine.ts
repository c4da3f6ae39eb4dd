/**
 * A command line as the simple commands that it runs: the words after quote removal, assignments, redirections, and
 * what only the running shell can know. Owns the reading of the shell's grammar; leaves what a command may do to
 * `CommandHazards.ts`, and verdicts to `CommandRules.ts`. Pure. Spec: BR-1..BR-3.
 */
import type { Assignment, forEachChild, parse, ParsedScript, Redirection, SyntaxNode, WordPart } from "unbash"
import { literal } from "./Rule.ts"

/** One word of a command. */
export interface Word {
  /** The word after quote removal; as written where it is not fixed. */
  readonly text: string
  /** Nothing in it is left to the running shell: no expansion, no glob. */
  readonly fixed: boolean
  /** A pattern of the texts that the word can become. */
  readonly pattern: string
  /** It can become several words, or none. */
  readonly splits: boolean
  /** It is not fixed, and can become an option. */
  readonly option: boolean
}

export interface Redirected {
  readonly text: string
  /** It duplicates or closes a descriptor, names `/dev/null`, or gives text. */
  readonly harmless: boolean
  /** The text that a here-document or here-string gives, where it is fixed. */
  readonly input: string | undefined
}

export interface Assigned {
  readonly name: string
  readonly text: string
}

/** A command with its words. One without words only assigns or redirects. */
export interface SimpleCommand {
  readonly assignments: ReadonlyArray<Assigned>
  readonly words: ReadonlyArray<Word>
  readonly redirects: ReadonlyArray<Redirected>
  /** As it is written. */
  readonly source: string
  /** The operators of its substitutions: `$(`, a backquote, `<(`, `>(`. */
  readonly substitutions: ReadonlyArray<string>
  /** It calls a function that the line has defined before; the function's body is judged. */
  readonly defined: boolean
}

export interface ReadLine {
  readonly text: string
  readonly commands: ReadonlyArray<SimpleCommand>
  /** What is not part of any command and has to be asked about; `hides`: it may run a command that nobody sees. */
  readonly loose: ReadonlyArray<{ readonly what: string; readonly hides: boolean }>
}

/** A line that cannot be judged by its commands. */
export interface UnreadLine {
  readonly text: string
  readonly unread: string
}

export type CommandLine = ReadLine | UnreadLine

/** The parser's package, which is loaded at the first command. */
export interface Grammar {
  readonly parse: typeof parse
  readonly forEachChild: typeof forEachChild
}

/** More than any command that a person could check; parsing takes quadratic time in the number of here-documents. */
const maximumCharacters = 16_384
const maximumCommands = 500

/** Spaces that are not the shell's, control characters, and characters that are not visible. */
const strange = /[^\P{C}\n\t]|[^\P{Z} ]|\p{Default_Ignorable_Code_Point}/u

type Loose = ReadLine["loose"][number]

interface Walk {
  readonly grammar: Grammar
  readonly source: string
  readonly commands: Array<SimpleCommand>
  readonly loose: Array<Loose>
  /** Functions that the line has defined for certain. */
  readonly functions: Set<string>
}

interface Around {
  /** Redirections of the compound commands around. */
  readonly redirects: ReadonlyArray<Redirected>
  readonly inFunction: boolean
  /** What is here runs, once and in the shell of the line itself. */
  readonly certain: boolean
}

class Unreadable extends Error {}

const globs = new Set<string>(["Glob", "ExtendedGlob", "BraceExpansion"])

/** Whether an expansion sets a variable, or runs what one holds: arithmetic runs the substitutions in it. */
const evaluates = (part: SyntaxNode): boolean => {
  if (part.type === "ArithmeticWord") return !/^\d+$/.test(part.value)
  if (part.type !== "ParameterExpansion") return false
  return (
    part.prefix === "!" ||
    (part.index !== undefined && !/^(?:\d+|[@*])$/.test(part.index.text)) ||
    part.operation?.type === "Slice" ||
    (part.operation?.type === "Default" && part.operation.operator.endsWith("=")) ||
    part.operation?.type === "Transform"
  )
}

/** Whether an expansion, even in quotes, gives several words. */
const isMany = (part: WordPart): boolean =>
  (part.type === "SimpleExpansion" && part.text === "$@") ||
  (part.type === "ParameterExpansion" && (part.parameter === "@" || part.prefix === "!" || part.index?.text === "@"))

/** A word's parts, in quotes or not, as literal texts and places that only the shell knows. */
const flat = (
  parts: ReadonlyArray<WordPart>,
  quoted = false
): ReadonlyArray<{ readonly text: string } | { readonly part: WordPart; readonly splits: boolean }> =>
  parts.flatMap((part) => {
    switch (part.type) {
      case "Literal":
      case "SingleQuoted":
      case "AnsiCQuoted":
        return [{ text: part.value }]
      case "DoubleQuoted":
        return part.parts.length === 0 ? [{ text: "" }] : flat(part.parts, true)
      default:
        return [{ part, splits: isMany(part) || (!quoted && part.type !== "Glob" && part.type !== "ExtendedGlob") }]
    }
  })

type WordNode = Extract<SyntaxNode, { readonly type: "Word" }>

const fixedWord = (text: string): Word => ({ text, fixed: true, pattern: literal(text), splits: false, option: false })

const wordOf = ({ parts, text, value }: WordNode): Word => {
  const pieces = parts === undefined ? [{ text: value }] : flat(parts)
  const fixed = pieces.every((piece) => "text" in piece)
  if (fixed) return fixedWord(value)
  const pattern = pieces.map((piece) => ("text" in piece ? literal(piece.text) : "*")).join("")
  const splits = pieces.some((piece) => "splits" in piece && piece.splits)
  // What stands before a brace or a glob is part of each word that these give.
  const spreads = pieces.some((piece) => "splits" in piece && piece.splits && !globs.has(piece.part.type))
  return { text, fixed, pattern, splits, option: spreads || /^[-*]/.test(pattern) }
}

const redirectedOf = (node: Redirection): Redirected => {
  const descriptor = node.descriptor === undefined ? "" : "name" in node.descriptor ? "{}" : `${node.descriptor.value}`
  if (node.type === "HereDoc") {
    if (node.closing === undefined) throw new Unreadable("a here-document does not end")
    const fixed = node.delimiter?.quoted === true || (node.body.parts ?? []).every(({ type }) => type === "Literal")
    return { text: node.operator, harmless: descriptor !== "{}", input: fixed ? node.body.text : undefined }
  }
  if (node.target === undefined) throw new Unreadable("a redirection has no target")
  const target = wordOf(node.target)
  if (node.type === "HereString") {
    return { text: "<<<", harmless: descriptor !== "{}", input: target.fixed ? target.text : undefined }
  }
  const duplicates = node.operator === ">&" || node.operator === "<&"
  const harmless =
    descriptor !== "{}" &&
    target.fixed &&
    (target.text === "/dev/null" || (duplicates && /^(?:\d+-?|-)$/.test(target.text)))
  return { text: `${descriptor}${node.operator} ${target.text}`, harmless, input: undefined }
}

const assignedOf = ({ name, text }: Assignment): Assigned => ({ name, text })

/** An assignment among the arguments, as `export` takes it. */
const argumentOf = ({ append, name, text, value }: Assignment): Word => {
  const operator = append === true ? "+=" : "="
  if (value.type !== "Word") return { text, fixed: false, pattern: `${name}${operator}*`, splits: false, option: false }
  const word = wordOf(value)
  const shown = word.fixed ? `${name}${operator}${word.text}` : text
  return { ...word, text: shown, pattern: `${name}${operator}${word.pattern}`, option: false }
}

/** What evaluates a variable as arithmetic or as a name: a variable's text can hold a substitution there. */
const evaluated = (node: SyntaxNode): Loose | undefined => {
  const arithmetic =
    evaluates(node) ||
    (node.type === "TestBinary" &&
      /^-(?:eq|ne|lt|le|gt|ge)$/.test(node.operator) &&
      ![node.left, node.right].every((word) => /^-?\d+$/.test(word.text))) ||
    (node.type === "TestUnary" && node.operator === "-v") ||
    (node.type === "Assignment" && node.index !== undefined && !/^\d+$/.test(node.index.text))
  return arithmetic ? { what: "an expression that evaluates what a variable holds", hides: true } : undefined
}

/** Walks what substitutions below the node run; gives their operators. */
const substitutionsIn = (walk: Walk, around: Around, node: SyntaxNode): ReadonlyArray<string> => {
  const found: Array<string> = []
  const visit = (child: SyntaxNode): void => {
    const loose = evaluated(child)
    if (loose !== undefined) walk.loose.push(loose)
    if (
      child.type !== "CommandExpansion" &&
      child.type !== "ProcessSubstitution" &&
      child.type !== "ArithmeticCommandExpansion"
    ) {
      return walk.grammar.forEachChild(child, visit)
    }
    found.push(child.text.startsWith("`") ? "`" : child.text.slice(0, 2))
    if (child.script === undefined) throw new Unreadable("a substitution cannot be read")
    const source = child.script.source ?? walk.source
    // The redirections around are not those of what it runs.
    walkScript({ ...walk, source }, { ...around, redirects: [], certain: false }, child.script)
  }
  visit(node)
  return found
}

const walkScript = (walk: Walk, around: Around, script: ParsedScript): void => {
  const error = script.errors?.[0]
  if (error !== undefined) throw new Unreadable(error.message)
  for (const statement of script.commands) walkNode(walk, around, statement)
}

const take = (walk: Walk, command: Partial<SimpleCommand>): void => {
  if (walk.commands.length >= maximumCommands) throw new Unreadable(`it has more than ${maximumCommands} commands`)
  const nothing = { assignments: [], words: [], redirects: [], source: "", substitutions: [], defined: false }
  walk.commands.push({ ...nothing, ...command })
}

type CommandNode = Extract<SyntaxNode, { readonly type: "Command" }>

const walkCommand = (walk: Walk, around: Around, node: CommandNode, timed: boolean): void => {
  const name = node.name === undefined ? [] : [wordOf(node.name)]
  const words = node.args.map((child) => (child.type === "Word" ? wordOf(child) : argumentOf(child)))
  take(walk, {
    assignments: node.prefix.flatMap((child) => (child.type === "Assignment" ? [assignedOf(child)] : [])),
    words: [...(timed ? [fixedWord("time")] : []), ...name, ...words],
    redirects: [...node.redirects.map(redirectedOf), ...around.redirects],
    source: walk.source.slice(node.pos, node.end),
    substitutions: substitutionsIn(walk, around, node),
    defined: !timed && !around.inFunction && walk.functions.has(name[0]?.text ?? "")
  })
}

/** What runs nothing but its substitutions. */
const inert = ({ type }: SyntaxNode): boolean =>
  type === "Word" || type === "TestCommand" || (type.startsWith("Arithmetic") && type !== "ArithmeticFor")

const walkNode = (walk: Walk, around: Around, node: SyntaxNode): void => {
  const inside = { ...around, certain: false }
  const below = (child: SyntaxNode, place: Around = inside) => walkNode(walk, place, child)
  const outOfPlace = (child: SyntaxNode) => {
    if (substitutionsIn(walk, around, child).length === 0) return
    walk.loose.push({ what: "a substitution outside of a command", hides: false })
  }
  if (inert(node)) return outOfPlace(node)
  switch (node.type) {
    case "Statement":
      below(node.command)
      if (around.certain && node.command.type === "Function" && node.background !== true) {
        walk.functions.add(node.command.name.text)
      }
      return
    case "Command":
      return walkCommand(walk, around, node, false)
    case "Pipeline":
      return node.commands.forEach((command, index) => {
        const timed = index === 0 && node.prefixes.some(({ type }) => type === "Time")
        if (timed && command.type === "Command") walkCommand(walk, around, command, true)
        else below(command)
      })
    case "Redirected": {
      const own = node.redirects.map(redirectedOf)
      node.redirects.forEach(outOfPlace)
      if (own.some(({ harmless }) => !harmless)) walk.loose.push({ what: "a redirection of a group", hides: false })
      return below(node.command, { ...inside, redirects: [...around.redirects, ...own] })
    }
    case "Function":
      return below(node.body, { ...inside, inFunction: true })
    case "For":
    case "Select":
      // A loop's variable is assigned like any other.
      take(walk, { assignments: [{ name: node.name.text, text: `${node.name.text}=` }] })
      node.wordlist?.forEach(outOfPlace)
      return below(node.body)
    case "Coproc":
      return below(node.body)
    default:
      return walk.grammar.forEachChild(node, (child) => below(child))
  }
}

/** Reads a line. One that is too long, does not parse, or hides characters is not read. */
export const readCommandLine = (grammar: Grammar, text: string): CommandLine => {
  if (text.length > maximumCharacters) return { text, unread: `it has more than ${maximumCharacters} characters` }
  if (strange.test(text)) return { text, unread: "it has characters that cannot be seen" }
  const walk: Walk = { grammar, source: text, commands: [], loose: [], functions: new Set() }
  try {
    walkScript(walk, { redirects: [], inFunction: false, certain: true }, grammar.parse(text))
  } catch (error) {
    // Whatever the parser stumbles over, deep nesting among it, is not read.
    return { text, unread: error instanceof Unreadable ? error.message : "it is too complicated" }
  }
  return { text, commands: walk.commands, loose: walk.loose }
}
