/**
 * Loads skills: folders with a `SKILL.md`, whose front matter says when to use the skill and whose body is read on
 * demand. Skills come from the user's folder, the folders that the host configured, and the project's
 * `.daybook/skills`. For duplicate names, the later of the first two wins; a project adds skills and replaces none.
 * Location-scoped. Spec: CX-29, CX-44..CX-47 in specs/context.md.
 */
import * as fs from "node:fs/promises"
import * as path from "node:path"
import { Array as Arr, Context, Effect, Either, Layer, Schema } from "effect"
import { CurrentLocation } from "@daybook/log/domain/Values"
import { describeIssues } from "@daybook/log/support/Issues"
import { withSpan } from "@daybook/log/support/Spans"
import { expects, name as skillName, namePattern, parseFrontmatter, shaped, showIssues } from "../definition/Yaml.ts"
import { verdictOf } from "../domain/Rule.ts"
import { isMissing, isWithin, quotedPath, realpath } from "../support/TextFile.ts"
import { warnOnce } from "@daybook/log/support/LoggedOnce"
import { notCounting, type Project, projectAt, ProjectTrust } from "../trust/ProjectTrust.ts"
import { makeReader } from "./InstructionFile.ts"
import { absent, available, ContextSettings, type ContextSource, source } from "./SystemContext.ts"

export interface Skill {
  readonly name: string
  /** One line: when to use the skill. */
  readonly description: string
  /** The skill's folder, absolute. */
  readonly folder: string
  readonly body: string
}

export class Skills extends Context.Tag("@daybook/core/Skills")<
  Skills,
  {
    /** Every skill of the Location, by name. Never fails: unusable skills are omitted and logged. */
    readonly list: Effect.Effect<ReadonlyArray<Skill>>
    /** Names of the files beside a skill's `SKILL.md`, relative to its folder, sorted and limited. */
    readonly files: (skill: Skill) => Effect.Effect<ReadonlyArray<string>>
  }
>() {}

/** Maximum skills per folder, and files per skill. */
const maximumSkills = 200
const maximumFiles = 100
const maximumDescription = 1_024

const Head = Schema.Struct({
  name: Schema.optionalWith(skillName, { exact: true }),
  description: Schema.NonEmptyTrimmedString.pipe(expects("a text that says when the skill is of use"))
}).pipe(shaped("keys with their values"))
const decodeHead = Schema.decodeUnknownEither(Head, { errors: "all", onExcessProperty: "ignore" })

const oneLine = (text: string) => {
  const line = text.replaceAll(/\s+/g, " ")
  return line.length <= maximumDescription ? line : `${line.slice(0, maximumDescription)}...`
}

/** Parses a `SKILL.md`; Left describes the error. Pure. */
const parseSkill = (text: string, folder: string): Either.Either<Skill, string> =>
  Either.gen(function* () {
    const { body, data } = yield* Either.mapLeft(parseFrontmatter(text), showIssues)
    const head = yield* Either.mapLeft(decodeHead(data.value), (error) => describeIssues(error, "the front matter"))
    const { description, name = path.basename(folder) } = head
    if (!namePattern.test(name)) yield* Either.left(`${JSON.stringify(name)} is not a valid skill name`)
    return { name, description: oneLine(description), folder, body }
  })

/** Sub-folders by name, including links, up to the limit. */
const subfolders = async (folder: string): Promise<ReadonlyArray<string>> => {
  const names: Array<string> = []
  for await (const entry of await fs.opendir(folder)) {
    if (entry.isDirectory() || entry.isSymbolicLink()) names.push(entry.name)
    if (names.length >= maximumSkills) break
  }
  return names.sort()
}

const filesOf = async (folder: string): Promise<ReadonlyArray<string>> => {
  const names: Array<string> = []
  const waiting = [folder]
  for (let at = waiting.shift(); at !== undefined && names.length < maximumFiles; at = waiting.shift()) {
    for await (const entry of await fs.opendir(at)) {
      const full = path.join(at, entry.name)
      // Links are not followed: nothing outside the skill's folder is listed.
      if (entry.isDirectory() && waiting.length < maximumFiles) waiting.push(full)
      if (entry.isFile() && entry.name !== "SKILL.md") names.push(path.relative(folder, full))
      if (names.length >= maximumFiles) break
    }
  }
  return names.sort()
}

interface Shelf {
  readonly folder: string
  /** The canonical folder that must contain every skill. */
  readonly within?: string
}

const make = Effect.gen(function* () {
  const { directory } = yield* CurrentLocation
  const settings = yield* ContextSettings
  const trust = yield* ProjectTrust
  const reader = makeReader()
  const warn = warnOnce()

  /** Shelves of the user and the configuration; the later one wins. */
  const shelves: ReadonlyArray<Shelf> = [
    ...(settings.userFolder === undefined ? [] : [{ folder: path.join(settings.userFolder, "skills") }]),
    ...settings.skills.map((folder) => ({ folder: path.resolve(directory, folder) }))
  ]

  const skill = Effect.fnUntraced(function* (folder: string, within: string | undefined) {
    const file = path.join(folder, "SKILL.md")
    const read = yield* reader.read(file, within)
    if (read._tag !== "Found") return []
    const parsed = parseSkill(read.file.text, folder)
    if (Either.isRight(parsed)) return [parsed.right]
    yield* warn(`the skill ${quotedPath(file)} is ignored: ${parsed.left}`)
    return []
  })

  const shelf = Effect.fnUntraced(function* ({ folder, within }: Shelf) {
    if (isMissing(folder)) return []
    const real = yield* Effect.option(Effect.tryPromise(() => realpath(folder)))
    if (real._tag === "None") return []
    if (within !== undefined && !isWithin(within, real.value)) {
      yield* warn(`the skills in ${quotedPath(folder)} are ignored: the folder leads out of its project`)
      return []
    }
    const names = yield* Effect.either(Effect.tryPromise(() => subfolders(real.value)))
    if (Either.isLeft(names)) {
      yield* warn(`the skills in ${quotedPath(folder)} are ignored: the folder cannot be listed`)
      return []
    }
    return (yield* Effect.forEach(names.right, (name) => skill(path.join(real.value, name), within))).flat()
  })

  const ofProject = (project: Project) =>
    !settings.projectConfig || notCounting(project) !== undefined
      ? Effect.succeed([])
      : shelf({ folder: path.join(project.root, ".daybook", "skills"), within: project.root })

  return Skills.of({
    list: Effect.gen(function* () {
      const project = yield* projectAt(trust, directory)
      const counts = notCounting(project) === undefined
      const usable = shelves.filter(({ folder }) => counts || !isWithin(project.root, folder))
      const above = (yield* Effect.forEach(usable, shelf)).flat()
      const byName = new Map(above.map((each) => [each.name, each]))
      const [mine, taken] = Arr.partition(yield* ofProject(project), ({ name }) => byName.has(name))
      // A project must not replace a skill whose name the user trusts.
      for (const { folder, name } of taken) {
        yield* warn(
          `the skill ${quotedPath(folder)} is ignored: skill "${name}" already exists, and a project cannot change it; choose another name`
        )
      }
      for (const each of mine) byName.set(each.name, each)
      return [...byName.values()].sort((a, b) => (a.name < b.name ? -1 : 1)).slice(0, maximumSkills)
    }).pipe(withSpan("Skills.list")),
    files: ({ folder }) =>
      Effect.orElseSucceed(
        Effect.tryPromise(() => filesOf(folder)),
        () => []
      )
  })
})

export const layer = Layer.effect(Skills, make)

// Tells which skills the turn's agent may load, and when to use them.

const Guidance = Schema.Array(Schema.Struct({ name: Schema.String, description: Schema.String }))
type Guidance = typeof Guidance.Type

const list = (skills: Guidance) => skills.map(({ description, name }) => `- ${name}: ${description}`).join("\n")

/** The permission to load a skill; the resource is the skill's name. */
export const skillPermission = "skill"

export const skillGuidance = (skills: Context.Tag.Service<typeof Skills>): ContextSource =>
  source({
    key: "agent/skills",
    schema: Guidance,
    load: ({ agent }) =>
      Effect.map(skills.list, (all) => {
        const usable = all.filter(({ name }) => verdictOf(agent.permissions, skillPermission, name) !== "deny")
        return usable.length === 0 ? absent : available(usable.map(({ description, name }) => ({ name, description })))
      }),
    baseline: (skills) =>
      `Skills hold instructions for work of a certain kind. Before such work, load the one that fits with the tool "skill" ` +
      `and follow it:\n${list(skills)}`,
    update: (_, skills) =>
      `The skills that can be loaded are these now, in place of those named before:\n${list(skills)}`,
    removed: () => "There are no skills to load any more; those named before are gone."
  })
