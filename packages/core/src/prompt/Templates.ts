/**
 * Resolves templates, which are prompts with names: the host's or configuration's, then the user's folder, then the
 * project's. Inserts their arguments. Spec: CF-17..CF-19, CF-48 in specs/config.md.
 */
import { Context, Effect, Either, Layer, Schema } from "effect"
import type { Location } from "@daybook/log/domain/Values"
import { type DefinitionProblem, type DefinitionSources, makeDefinitions } from "../definition/DefinitionFolder.ts"
import {
  decodeParsed,
  type Frontmatter,
  type Issue,
  name as Name,
  optional,
  shaped,
  someText
} from "../definition/Yaml.ts"
import { ProjectTrust, type Trust } from "../trust/ProjectTrust.ts"

// Expands a template with the arguments after its name.

/** The expanded text is longer than a prompt may be. */
export class TemplateTooLong extends Schema.TaggedError<TemplateTooLong>("@daybook/core/TemplateTooLong")(
  "TemplateTooLong",
  { limit: Schema.Int }
) {
  override get message() {
    return `with its arguments the template has more than ${this.limit.toLocaleString("en")} characters`
  }
}

const limit = 1024 * 1024

/** Runs of literal characters: outside quotes, and within either kind. */
const plain = { "": /[^\s"'\\]+/y, "'": /[^']+/y, '"': /[^"\\]+/y } as const

/**
 * Splits words as a shell does: at white space, except within quotes. Single quotes keep everything. In double quotes,
 * a backslash escapes a quote or a backslash; outside quotes, it escapes any character. An unclosed quote ends with the
 * text.
 */
export const splitWords = (text: string): ReadonlyArray<string> => {
  const words: Array<string> = []
  let quote: keyof typeof plain = ""
  // Undefined between words: an empty word counts.
  let word: string | undefined
  for (let index = 0; index < text.length; index++) {
    const run = plain[quote]
    run.lastIndex = index
    const [same] = run.exec(text) ?? []
    const character = text.charAt(index)
    const next = text.charAt(index + 1)
    if (same !== undefined) {
      word = (word ?? "") + same
      index += same.length - 1
    } else if (character === "\\") {
      const keeps = next !== "" && (quote === "" || next === '"' || next === "\\")
      word = (word ?? "") + (keeps ? next : character)
      if (keeps) index++
    } else if (character === quote) {
      quote = ""
    } else if (character === '"' || character === "'") {
      quote = character
      word ??= ""
    } else {
      // White space outside quotes; all other cases are handled above.
      if (word !== undefined) words.push(word)
      word = undefined
    }
  }
  return word === undefined ? words : [...words, word]
}

/** A second dollar sign before a placeholder makes it literal. */
const placeholder = /(\$?)\$(ARGUMENTS(?!\w)|[1-9](?!\d))/g

/**
 * Inserts arguments: `$ARGUMENTS` is the typed text, `$1` to `$9` are its words; a missing word is empty. Inserted text
 * is not expanded again. A template without a placeholder gets the arguments appended.
 */
export const expandTemplate = (body: string, argumentsText: string): Either.Either<string, TemplateTooLong> => {
  const typed = argumentsText.trim()
  const words = splitWords(typed)
  let [placed, length] = [false, body.length]
  const parts: Array<string> = []
  let from = 0
  for (const match of body.matchAll(placeholder)) {
    const [whole, escape, name = ""] = match
    if (escape === "") placed = true
    const value = escape === "" ? (name === "ARGUMENTS" ? typed : (words[Number(name) - 1] ?? "")) : `$${name}`
    length += value.length - whole.length
    // Checked before the text is built: a short template can expand to a huge text.
    if (length > limit) return Either.left(new TemplateTooLong({ limit }))
    parts.push(body.slice(from, match.index), value)
    from = match.index + whole.length
  }
  const expanded = [...parts, body.slice(from)].join("")
  const text = placed || typed === "" ? expanded : `${expanded}\n\n${typed}`
  return text.length > limit ? Either.left(new TemplateTooLong({ limit })) : Either.right(text)
}

export interface Template {
  readonly name: string
  readonly description?: string
  readonly body: string
}

/** No such template, or its file is unusable. */
export class TemplateNotFound extends Schema.TaggedError<TemplateNotFound>("@daybook/core/TemplateNotFound")(
  "TemplateNotFound",
  {
    template: Schema.String,
    known: Schema.Array(Schema.String),
    /** The problem of the file that defines this template. */
    problem: Schema.optionalWith(Schema.String, { exact: true })
  }
) {
  override get message() {
    if (this.problem !== undefined) return `template "${this.template}" cannot be used: ${this.problem}`
    const known = this.known.length === 0 ? "there are none" : `known: ${this.known.join(", ")}`
    return `there is no template "${this.template}"; ${known}`
  }
}

/** The user's folder has `templates/*.md`; it is `$XDG_CONFIG_HOME/daybook`. */
export interface TemplateOptions extends DefinitionSources {
  readonly templates?: ReadonlyArray<Template> | undefined
}

/** What `Templates` offers. */
export interface Service {
  readonly find: (name: string, location?: Location) => Effect.Effect<Template, TemplateNotFound>
  readonly list: (location?: Location) => Effect.Effect<ReadonlyArray<Template>>
  readonly problems: (location?: Location) => Effect.Effect<ReadonlyArray<DefinitionProblem>>
}

/**
 * The templates of this host, its user, and the project at a Location.
 *
 * @example
 * ```ts
 * import { Templates } from "@daybook/core"
 * import { Effect } from "effect"
 *
 * export const names = Effect.gen(function* () {
 *   const templates = yield* Templates.Templates
 *   return (yield* templates.list({ directory: process.cwd() })).map(({ name }) => name)
 * })
 * ```
 */
export class Templates extends Context.Tag("@daybook/core/Templates")<Templates, Service>() {}

const Head = Schema.Struct({ description: optional(someText) }).pipe(shaped("a map"))

const parse = ({ body, data }: Frontmatter, stem: string): Either.Either<Template, ReadonlyArray<Issue>> =>
  Either.flatMap(
    Either.all({ head: decodeParsed(Head, data), name: decodeParsed(Name, { ...data, value: stem }) }),
    ({ head, name }) =>
      body === ""
        ? Either.left([{ path: "", details: "it has no text after its front matter" }])
        : Either.right({ ...head, name, body })
  )

const make = (options: TemplateOptions, trust: Trust) => {
  const { ofProject, ofUser, warn } = makeDefinitions("templates", parse, options, trust)

  const look = Effect.fnUntraced(function* (location: Location | undefined) {
    const byName = new Map((options.templates ?? []).map((template) => [template.name, template]))
    const broken = new Map<string, string>()
    const problems: Array<DefinitionProblem> = []
    for (const { path: file, result, stem } of [...(yield* ofUser), ...(yield* ofProject(location))]) {
      const above = byName.has(stem) || broken.has(stem)
      if (Either.isLeft(result)) {
        problems.push({ path: file, details: result.left })
        if (!above) broken.set(stem, `${file}: ${result.left}`)
      } else if (above) {
        problems.push({ path: file, details: `template "${stem}" already exists; choose another name` })
      } else {
        byName.set(stem, result.right)
      }
    }
    yield* warn(problems)
    return { byName, broken, problems }
  })

  return Templates.of({
    find: Effect.fn("Templates.find")(function* (name, location) {
      const { broken, byName } = yield* look(location)
      const template = byName.get(name)
      if (template !== undefined) return template
      const problem = broken.get(name)
      const known = [...byName.keys()]
      return yield* new TemplateNotFound({ template: name, known, ...(problem === undefined ? {} : { problem }) })
    }),
    list: Effect.fn("Templates.list")((location) => Effect.map(look(location), ({ byName }) => [...byName.values()])),
    problems: Effect.fn("Templates.problems")((location) => Effect.map(look(location), ({ problems }) => problems))
  })
}

export const layer = (options: TemplateOptions = {}): Layer.Layer<Templates> =>
  Layer.effect(
    Templates,
    Effect.map(ProjectTrust, (trust) => make(options, trust))
  )
