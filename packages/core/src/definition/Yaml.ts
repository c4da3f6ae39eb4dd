/**
 * Parses YAML to plain data, and reports errors with their place and the expected form. Accepts only what JSON can
 * represent: no tags, anchors, aliases, merge keys or duplicate keys. Pure. Spec: CF-2, CF-3, CF-4.
 */
import { type Effect, Either, ParseResult, Schema } from "effect"
import type { ParseOptions } from "effect/SchemaAST"
import { type Document, isAlias, isNode, Lexer, LineCounter, parseDocument, Parser, visit } from "yaml"

// Schemas for values in files that users write; their errors name the expected form.

/** Annotates a leaf: every error reads `expected <what>`. */
export const expects =
  (what: string) =>
  <A, I>(schema: Schema.Schema<A, I>): Schema.Schema<A, I> =>
    schema.annotations({ message: () => ({ message: `expected ${what}`, override: true }) })

/** Annotates a map or list: a value of another type reads `expected <what>`; errors inside keep their messages. */
export const shaped =
  (what: string) =>
  <A, I>(schema: Schema.Schema<A, I>): Schema.Schema<A, I> =>
    schema.annotations({ message: () => `expected ${what}` })

export const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

export const boolean = Schema.Boolean.pipe(expects("true or false"))
export const text = Schema.String.pipe(expects("a text"))
export const someText = Schema.NonEmptyTrimmedString.pipe(expects("a text that is not empty"))
export const texts = Schema.Array(someText).pipe(shaped("a list of texts"))
export const whole = Schema.Int.pipe(Schema.nonNegative(), expects("a whole number, 0 or more"))
export const counting = Schema.Int.pipe(Schema.positive(), expects("a whole number, 1 or more"))
export const amount = Schema.Finite.pipe(Schema.nonNegative(), expects("a number, 0 or more"))

/** Names of agents, templates and references: part of file names, commands and mentions. */
export const namePattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/
export const nameRule = "1 to 64 letters, digits, dots, underscores or hyphens, the first a letter or digit"
export const name = Schema.String.pipe(Schema.pattern(namePattern), expects(`a name: ${nameRule}`))

export const made = <A>() => Schema.declare((value: unknown): value is A => value !== undefined)

type Decode<A> = (value: unknown, options?: ParseOptions) => Effect.Effect<A, ParseResult.ParseIssue>

/** Decodes with the schema that the value's shape selects, so that errors refer to the intended form. */
export const selected = <A>(select: (value: unknown) => Decode<A>): Schema.Schema<A, unknown> =>
  Schema.transformOrFail(Schema.Unknown, made<A>(), {
    strict: true,
    decode: (value, options) => select(value)(value, options),
    encode: (value) => ParseResult.succeed(value)
  })

/** One error. `path` is the key path (`mcp.files.args[0]`), empty for the whole file; lines, columns from 1. */
export const Issue = Schema.Struct({
  path: Schema.String,
  line: Schema.optionalWith(Schema.Int, { exact: true }),
  column: Schema.optionalWith(Schema.Int, { exact: true }),
  details: Schema.String
})
export type Issue = typeof Issue.Type

export type KeyPath = ReadonlyArray<PropertyKey>

/** A document's data, and the position of a key in the text. */
export interface Parsed {
  readonly value: unknown
  readonly at: (path: KeyPath) => Pick<Issue, "line" | "column">
}

const clip = (text: string, length: number): string => (text.length <= length ? text : `${text.slice(0, length)}...`)

export const showPath = (path: KeyPath): string =>
  path.reduce<string>((shown, key) => {
    if (typeof key === "number") return `${shown}[${key}]`
    const name = clip(String(key), 80)
    const plain = /^[\w.*/-]+$/.test(name) ? name : JSON.stringify(name)
    return shown === "" ? plain : `${shown}.${plain}`
  }, "")

export const showIssue = ({ column, details, line, path }: Issue): string => {
  const place = line === undefined ? "" : `line ${line}${column === undefined ? "" : `, column ${column}`}: `
  return `${place}${path === "" ? "" : `${path}: `}${details}`
}

const maximumShown = 20

export const showIssues = (issues: ReadonlyArray<Issue>): string => {
  const more = issues.length > maximumShown ? [`and ${issues.length - maximumShown} more`] : []
  return [...issues.slice(0, maximumShown).map(showIssue), ...more].join("\n")
}

const maximumNesting = 64
const maximumTokens = 20_000

/**
 * Why a text is too deep or has too many tokens. Checked first and in linear time: parsing recurses with the text and
 * compares a map's keys pairwise, and a regular expression compiled on a nearly exhausted stack ends the process.
 */
const unmanageable = (text: string): string | undefined => {
  const parser = new Parser()
  let tokens = 0
  for (const lexeme of new Lexer().lex(text)) {
    // Only the parser's stack matters here.
    for (const token of parser.next(lexeme)) void token
    if (parser.stack.length > maximumNesting) return "it is nested too deeply"
    if (++tokens > maximumTokens) return "it has too many keys and values"
  }
  return undefined
}

/** Parses one document. `firstLine` is the text's first line in the file. An empty text is an empty map. */
export const parseYaml = (text: string, firstLine = 1): Either.Either<Parsed, ReadonlyArray<Issue>> => {
  const unread = unmanageable(text)
  if (unread !== undefined) return Either.left([{ path: "", details: unread }])
  const lines = new LineCounter()
  const place = (offset: number) => {
    const { col, line } = lines.linePos(offset)
    return line === 0 ? {} : { line: line + firstLine - 1, column: col }
  }
  try {
    const document: Document = parseDocument(text, {
      lineCounter: lines,
      prettyErrors: false,
      stringKeys: true,
      merge: false,
      resolveKnownTags: false,
      logLevel: "error"
    })
    const issues: Array<Issue> = [...document.errors, ...document.warnings].map(({ message, pos }) => ({
      path: "",
      ...place(pos[0]),
      details: clip(message, 300)
    }))
    visit(document, {
      Node: (_, node) => {
        if (!isAlias(node) && node.anchor === undefined) return
        const details = "anchors and aliases are not supported: write the value where it is used"
        issues.push({ path: "", ...place(node.range?.[0] ?? 0), details })
      }
    })
    if (issues.length > 0) return Either.left(issues)
    const at = (path: KeyPath) => {
      for (let length = path.length; length > 0; length--) {
        const node: unknown = document.getIn(path.slice(0, length), true)
        if (isNode(node) && node.range) return place(node.range[0])
      }
      return {}
    }
    return Either.right({ value: document.toJS({ maxAliasCount: 0 }) ?? {}, at })
  } catch {
    return Either.left([{ path: "", details: "it is not valid YAML" }])
  }
}

/** The edit distance of two words: inserted, deleted, replaced or swapped letters. */
const distance = (a: string, b: string): number => {
  const rows: Array<ReadonlyArray<number>> = [Array.from({ length: b.length + 1 }, (_, column) => column)]
  const at = (row: number, column: number) => rows[row]?.[column] ?? 0
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const other = a[i - 1] === b[j - 1] ? 0 : 1
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const steps = [at(i - 1, j - 1) + other, at(i - 1, j) + 1, (row[j - 1] ?? 0) + 1]
      row.push(Math.min(...steps, swapped ? at(i - 2, j - 2) + 1 : Infinity))
    }
    rows.push(row)
  }
  return at(a.length, b.length)
}

const bare = (name: string) => name.toLowerCase().replaceAll(/[^a-z0-9]/g, "")

/** The known name that was probably meant; undefined if none is close. */
export const nearest = (name: string, known: ReadonlyArray<string>): string | undefined => {
  if (name.length > 64) return undefined
  const ranked = known.map((word) => ({ word, far: distance(bare(name), bare(word)) })).sort((a, b) => a.far - b.far)
  const [best] = ranked
  return best !== undefined && best.far <= Math.max(1, Math.floor(best.word.length / 3)) ? best.word : undefined
}

/** Extracts the known keys from the decoder's message. */
const listed = (message: string) => [...message.matchAll(/"([^"]+)"/g)].map(([, name]) => name ?? "")

const unknownKey = (name: string, message: string): string => {
  const known = listed(message)
  const near = nearest(name, known)
  const hint = near === undefined ? `known: ${known.join(", ")}` : `did you mean ${JSON.stringify(near)}?`
  return `there is no such key; ${hint}`
}

const shown = (value: unknown): string => {
  if (value === null) return "nothing"
  if (Array.isArray(value)) return "a list"
  return typeof value === "object" ? "a map" : clip(JSON.stringify(value), 60)
}

const valueAt = (value: unknown, path: KeyPath): unknown =>
  path.reduce<unknown>(
    (at, key) => (typeof at === "object" && at !== null && Object.hasOwn(at, key) ? Reflect.get(at, key) : undefined),
    value
  )

/** Decodes the data, or reports every error. Values under a path that `secret` matches are never shown. */
export const decodeParsed = <A, I>(
  schema: Schema.Schema<A, I>,
  { at, value }: Parsed,
  secret: (path: KeyPath) => boolean = () => false
): Either.Either<A, ReadonlyArray<Issue>> =>
  Either.mapLeft(
    Schema.decodeUnknownEither(schema, { errors: "all", onExcessProperty: "error" })(value),
    (error): ReadonlyArray<Issue> =>
      ParseResult.ArrayFormatter.formatErrorSync(error)
        .map(({ _tag, message, path }) => {
          const actual = valueAt(value, path)
          // Default messages of the schema end with the value.
          const expected = clip(message.replace(/, actual [^]*$/, "").replace(/^Expected /, "expected "), 300)
          const found = actual === undefined || secret(path) ? "" : `, found ${shown(actual)}`
          const details = _tag === "Unexpected" ? unknownKey(String(path.at(-1)), message) : `${expected}${found}`
          return { path: showPath(path), ...at(path), details }
        })
        .sort((a, b) => (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0))
  )

// Splits Markdown with YAML front matter between two lines of three hyphens.

export interface Frontmatter {
  readonly data: Parsed
  /** The text after the front matter, trimmed. */
  readonly body: string
}

const fence = /^---[ \t]*$/

/** Splits a file. Without a first line of three hyphens, the whole file is the body. */
export const parseFrontmatter = (text: string): Either.Either<Frontmatter, ReadonlyArray<Issue>> => {
  const lines = text.replaceAll("\r\n", "\n").split("\n")
  if (!fence.test(lines[0] ?? "")) return Either.map(parseYaml(""), (data) => ({ data, body: text.trim() }))
  const end = lines.findIndex((line, index) => index > 0 && fence.test(line))
  if (end < 0) {
    return Either.left([{ path: "", line: 1, details: "the front matter is not closed with a line of three hyphens" }])
  }
  const body = lines
    .slice(end + 1)
    .join("\n")
    .trim()
  return Either.map(parseYaml(lines.slice(1, end).join("\n"), 2), (data) => ({ data, body }))
}
