/**
 * Parses a command line into the simple commands that it runs: words after quote removal, assignments, redirections,
 * and the parts that only the running shell can know. `CommandHazards.ts` decides what a command may do,
 * `CommandRules.ts` gives verdicts. Pure. Spec: BR-1..BR-3.
 */
import type { Assignment, forEachChild, parse, ParsedScript, Redirection, SyntaxNode, WordPart } from "unbash"
import { literal } from "../domain/Rule.ts"

export interface Word {
  readonly text: string
  /** The word after quote removal, with its expansions as written. */
  readonly unquoted: string
  /** It contains no expansion and no glob. */
  readonly fixed: boolean
  /** A pattern of the texts that the word can expand to. */
  readonly pattern: string
  /** It can expand to several words, or none. */
  readonly splits: boolean
  /** It is not fixed, and can expand to an option. */
  readonly option: boolean
}

export interface Redirected {
  readonly text: string
  /** It duplicates or closes a descriptor, names `/dev/null`, or supplies text. */
  readonly harmless: boolean
  /** The text of a here-document or here-string, with its expansions as written. */
  readonly input: string | undefined
  /** The input contains no expansion. */
  readonly fixed: boolean
}

export interface Assigned {
  readonly name: string
  readonly text: string
}

/** A command. Without words, it only assigns or redirects. */
export interface SimpleCommand {
  readonly assignments: ReadonlyArray<Assigned>
  readonly words: ReadonlyArray<Word>
  readonly redirects: ReadonlyArray<Redirected>
  /** The command as written. */
  readonly source: string
  /** The operators of its substitutions: `$(`, a backquote, `<(`, `>(`. */
  readonly substitutions: ReadonlyArray<string>
  /** It calls a function that the line defined earlier; the function's body is judged instead. */
  readonly defined: boolean
}

export interface ReadLine {
  readonly text: string
  readonly commands: ReadonlyArray<SimpleCommand>
  /** Parts outside any command that need a question. `hides`: it may run a command that is not visible in the line. */
  readonly loose: ReadonlyArray<{ readonly what: string; readonly hides: boolean }>
  /** Functions and coprocesses that the line may define. */
  readonly defines: ReadonlyArray<string>
}

/** A line whose commands cannot be determined. */
export interface UnreadLine {
  readonly text: string
  readonly unread: string
}

export type CommandLine = ReadLine | UnreadLine

/** The parser's package, loaded at the first command. */
export interface Grammar {
  readonly parse: typeof parse
  readonly forEachChild: typeof forEachChild
}

/** No person could check a longer command, and parsing takes quadratic time in the number of here-documents. */
const maximumCharacters = 16_384
const maximumCommands = 500

/** Spaces that the shell does not split at, control characters, and invisible characters. */
const strange = /[^\P{C}\n\t]|[^\P{Z} ]|\p{Default_Ignorable_Code_Point}/u

type Loose = ReadLine["loose"][number]

interface Walk {
  readonly grammar: Grammar
  readonly source: string
  readonly commands: Array<SimpleCommand>
  readonly loose: Array<Loose>
  readonly defines: Array<string>
  /** Functions that the line defines unconditionally. */
  readonly functions: Set<string>
}

interface Around {
  /** Redirections of the enclosing compound commands. */
  readonly redirects: ReadonlyArray<Redirected>
  readonly inFunction: boolean
  /** This part runs exactly once, in the line's own shell. */
  readonly certain: boolean
}

class Unreadable extends Error {}

const globs = new Set<string>(["Glob", "ExtendedGlob", "BraceExpansion"])

/** Whether an expansion sets a variable or executes a variable's text: arithmetic runs substitutions in that text. */
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

/** Whether an expansion gives several words even inside quotes. */
const isMany = (part: WordPart): boolean =>
  (part.type === "SimpleExpansion" && part.text === "$@") ||
  (part.type === "ParameterExpansion" && (part.parameter === "@" || part.prefix === "!" || part.index?.text === "@"))

/** The escapes of `$'...'` that every shell version reads alike; excludes escapes of a single byte and of NUL. */
const plainEscapes =
  /^(?:[^\\]|\\(?:[\\'"abefnrtv]|x[2-7][\dA-Fa-f]|[01]?[4-7][0-7]|u00[2-7][\dA-Fa-f](?![\dA-Fa-f])))*$/u

/** A word's parts as literal texts and parts that only the shell knows. */
const flat = (
  parts: ReadonlyArray<WordPart>,
  quoted = false
): ReadonlyArray<{ readonly text: string } | { readonly part: WordPart; readonly splits: boolean }> =>
  parts.flatMap((part) => {
    switch (part.type) {
      case "Literal":
      case "SingleQuoted":
        return [{ text: part.value }]
      case "AnsiCQuoted":
        return [plainEscapes.test(part.text.slice(2, -1)) ? { text: part.value } : { part, splits: false }]
      case "DoubleQuoted":
        return part.parts.length === 0 ? [{ text: "" }] : flat(part.parts, true)
      default:
        return [{ part, splits: isMany(part) || (!quoted && part.type !== "Glob" && part.type !== "ExtendedGlob") }]
    }
  })

/** A word without expansions. */
export const fixedWord = (text: string): Word => ({
  text,
  unquoted: text,
  fixed: true,
  pattern: literal(text),
  splits: false,
  option: false
})

const wordOf = ({ parts, text, value }: Extract<SyntaxNode, { readonly type: "Word" }>): Word => {
  const pieces = parts === undefined ? [{ text: value }] : flat(parts)
  const fixed = pieces.every((piece) => "text" in piece)
  if (fixed) return fixedWord(value)
  const pattern = pieces.map((piece) => ("text" in piece ? literal(piece.text) : "*")).join("")
  const splits = pieces.some((piece) => "splits" in piece && piece.splits)
  // The text before a brace or a glob begins each resulting word.
  const spreads = pieces.some((piece) => "splits" in piece && piece.splits && !globs.has(piece.part.type))
  const unquoted = pieces.map((piece) => ("text" in piece ? piece.text : piece.part.text)).join("")
  return { text, unquoted, fixed, pattern, splits, option: spreads || /^[-*]/.test(pattern) }
}

const redirectedOf = (node: Redirection): Redirected => {
  const descriptor = node.descriptor === undefined ? "" : "name" in node.descriptor ? "{}" : `${node.descriptor.value}`
  if (node.type === "HereDoc") {
    if (node.closing === undefined) throw new Unreadable("a here-document does not end")
    const fixed = node.delimiter?.quoted === true || (node.body.parts ?? []).every(({ type }) => type === "Literal")
    return { text: node.operator, harmless: descriptor !== "{}", input: node.body.text, fixed }
  }
  if (node.target === undefined) throw new Unreadable("a redirection has no target")
  const target = wordOf(node.target)
  if (node.type === "HereString") {
    return { text: "<<<", harmless: descriptor !== "{}", input: target.unquoted, fixed: target.fixed }
  }
  const duplicates = node.operator === ">&" || node.operator === "<&"
  // bash expands such a target a second time after it has removed the quotes.
  if (duplicates && /[$`]/.test(target.text)) throw new Unreadable("a redirection evaluates the text of its target")
  const harmless =
    descriptor !== "{}" &&
    target.fixed &&
    (target.text === "/dev/null" || (duplicates && /^(?:\d+-?|-)$/.test(target.text)))
  return { text: `${descriptor}${node.operator} ${target.text}`, harmless, input: undefined, fixed: target.fixed }
}

const assignedOf = ({ name, text }: Assignment): Assigned => ({ name, text })

/** An assignment in the arguments, as in `export x=y`. */
const argumentOf = ({ append, name, text, value }: Assignment): Word => {
  const operator = append === true ? "+=" : "="
  const begin = `${name}${operator}`
  if (value.type !== "Word") {
    return { text, unquoted: text, fixed: false, pattern: `${begin}*`, splits: false, option: false }
  }
  const word = wordOf(value)
  const shown = word.fixed ? `${begin}${word.text}` : text
  const unquoted = `${begin}${word.unquoted}`
  return { ...word, text: shown, unquoted, pattern: `${begin}${word.pattern}`, option: false }
}

/** An expression that evaluates a variable as arithmetic or as a name: the variable's text can hold a substitution. */
const evaluated = (node: SyntaxNode): Loose | undefined => {
  const arithmetic =
    evaluates(node) ||
    (node.type === "TestBinary" &&
      /^-(?:eq|ne|lt|le|gt|ge)$/.test(node.operator) &&
      ![node.left, node.right].every((word) => /^-?\d+$/.test(word.text))) ||
    (node.type === "TestUnary" && node.operator === "-v") ||
    (node.type === "Assignment" && node.index !== undefined && !/^\d+$/.test(node.index.text)) ||
    (node.type === "ArrayValue" && node.elements.some(({ text }) => /^[[{]/.test(text) && !/^\[\d+\]/.test(text)))
  return arithmetic ? { what: "an expression that evaluates what a variable holds", hides: true } : undefined
}

/** Walks the scripts of the substitutions below the node; returns their operators. */
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
    // The enclosing redirections do not apply to a substitution's commands.
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

/** A node that runs nothing except its substitutions. */
const inert = ({ type }: SyntaxNode): boolean =>
  type === "Word" || type === "TestCommand" || (type.startsWith("Arithmetic") && type !== "ArithmeticFor")

const walkNode = (walk: Walk, around: Around, node: SyntaxNode): void => {
  const inside = { ...around, certain: false }
  const below = (child: SyntaxNode, place: Around = inside) => walkNode(walk, place, child)
  const outOfPlace = (child: SyntaxNode) => {
    if (substitutionsIn(walk, around, child).length === 0) return
    walk.loose.push({ what: "a substitution outside a command", hides: false })
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
      walk.defines.push(node.name.text)
      return below(node.body, { ...inside, inFunction: true })
    case "For":
    case "Select":
      // The loop assigns its variable.
      take(walk, { assignments: [{ name: node.name.text, text: `${node.name.text}=` }] })
      node.wordlist?.forEach(outOfPlace)
      return below(node.body)
    case "Coproc":
      walk.defines.push(node.name?.text ?? "COPROC")
      return below(node.body)
    default:
      return walk.grammar.forEachChild(node, (child) => below(child))
  }
}

/** Parses a line. A line that is too long, does not parse, or has invisible characters is returned unread. */
export const readCommandLine = (grammar: Grammar, text: string): CommandLine => {
  if (text.length > maximumCharacters) return { text, unread: `it has more than ${maximumCharacters} characters` }
  if (strange.test(text)) return { text, unread: "it has invisible characters" }
  const walk: Walk = { grammar, source: text, commands: [], loose: [], defines: [], functions: new Set() }
  try {
    walkScript(walk, { redirects: [], inFunction: false, certain: true }, grammar.parse(text))
  } catch (error) {
    // Any parser failure, including one from deep nesting, makes the line unread.
    return { text, unread: error instanceof Unreadable ? error.message : "it is too complicated" }
  }
  // `unset` may have removed a function, so no function is certainly defined.
  const removes = walk.commands.some(({ words }) => words.some((word) => word.text === "unset"))
  const commands = removes ? walk.commands.map((each) => ({ ...each, defined: false })) : walk.commands
  return { text, commands, loose: walk.loose, defines: walk.defines }
}

/** A command of these words alone. */
export const bareCommand = (words: ReadonlyArray<Word>): SimpleCommand => ({
  words,
  assignments: [],
  redirects: [],
  source: "",
  substitutions: [],
  defined: false
})
