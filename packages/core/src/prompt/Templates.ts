/**
 * Resolves templates, which are prompts with names: the host's or configuration's, then the user's folder, then the
 * project's. `TemplateText.ts` inserts arguments. Spec: CF-17, CF-19.
 */
import * as path from "node:path"
import { Context, Effect, Either, Layer, Schema } from "effect"
import type { Location } from "@daybook/log/domain/Values"
import { makeDefinitionFolders, projectFolder } from "../definition/DefinitionFolder.ts"
import { name as Name, optional, shaped, someText } from "../definition/Fields.ts"
import { decodeParsed, type Frontmatter, type Issue } from "../definition/Yaml.ts"
import { warnOnce } from "../support/WarnOnce.ts"
import { notCounting } from "../trust/Project.ts"
import { ProjectTrust, type Trust } from "../trust/ProjectTrust.ts"

export { expandTemplate, splitWords, TemplateTooLong } from "./TemplateText.ts"

/** A text with placeholders for arguments. */
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

/** An unusable template file. */
export interface TemplateProblem {
  readonly path: string
  readonly details: string
}

export interface TemplateOptions {
  /** Templates of the host and the configuration. */
  readonly templates?: ReadonlyArray<Template> | undefined
  /** The user's folder with `templates/*.md`: `$XDG_CONFIG_HOME/daybook`. Default: none. */
  readonly userFolder?: string | undefined
  /** Whether projects may add templates; default: true. */
  readonly projectConfig?: boolean | undefined
}

/** The templates of this host, its user, and the project at a Location. */
export class Templates extends Context.Tag("@daybook/core/Templates")<
  Templates,
  {
    readonly find: (name: string, location?: Location) => Effect.Effect<Template, TemplateNotFound>
    readonly list: (location?: Location) => Effect.Effect<ReadonlyArray<Template>>
    /** Unusable files. */
    readonly problems: (location?: Location) => Effect.Effect<ReadonlyArray<TemplateProblem>>
  }
>() {}

const Head = Schema.Struct({ description: optional(someText) }).pipe(shaped("a map"))

const parse = ({ body, data }: Frontmatter, stem: string): Either.Either<Template, ReadonlyArray<Issue>> =>
  Either.flatMap(
    Either.all({ head: decodeParsed(Head, data), name: decodeParsed(Name, { ...data, value: stem }) }),
    ({ head, name }) =>
      body === ""
        ? Either.left([{ path: "", details: "it has no text after its front matter" }])
        : Either.right({ ...head, name, body })
  )

const make = ({ projectConfig = true, templates = [], userFolder }: TemplateOptions, trust: Trust) => {
  const folders = makeDefinitionFolders(parse)
  const warn = warnOnce()

  const ofProject = Effect.fnUntraced(function* (location: Location) {
    const project = yield* projectFolder(trust, location, "templates")
    const why = notCounting(project)
    return yield* why === undefined
      ? folders.read(project.folder, project.root)
      : folders.refused(project.folder, project.root, why)
  })

  const look = Effect.fnUntraced(function* (location: Location | undefined) {
    const own = userFolder === undefined ? [] : yield* folders.read(path.join(userFolder, "templates"))
    const theirs = location === undefined || !projectConfig ? [] : yield* ofProject(location)
    const byName = new Map(templates.map((template) => [template.name, template]))
    const broken = new Map<string, string>()
    const problems: Array<TemplateProblem> = []
    for (const { path: file, result, stem } of [...own, ...theirs]) {
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
    yield* Effect.forEach(problems, ({ details, path: file }) => warn(`template file ${file}: ${details}`), {
      discard: true
    })
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

/** Templates from a list and from files. */
export const layer = (options: TemplateOptions = {}): Layer.Layer<Templates> =>
  Layer.effect(
    Templates,
    Effect.map(ProjectTrust, (trust) => make(options, trust))
  )
