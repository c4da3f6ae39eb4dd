/**
 * Reads a folder of `*.md` files, each one definition with YAML front matter. Caches unchanged files, so that a read
 * per turn costs a listing and one `stat` per file. Spec: CF-1, CF-4, CF-5, CF-6, TR-20.
 */
import * as fs from "node:fs/promises"
import * as path from "node:path"
import { Effect, Either } from "effect"
import type { Location } from "@daybook/log/domain/Values"
import { isMissing, isWithin, readText, realpath, stampOf, TextFileError, tryFile } from "../support/TextFile.ts"
import { notCounting, projectAt, type Trust } from "../trust/ProjectTrust.ts"
import { warnOnce } from "@daybook/log/support/LoggedOnce"
import { type Frontmatter, type Issue, parseFrontmatter, showIssues } from "./Yaml.ts"

/** One file: its definition, or why it is invalid. */
export interface Definition<A> {
  readonly path: string
  /** The file's name without `.md`. */
  readonly stem: string
  readonly result: Either.Either<A, string>
}

/** Maximum bytes of a definition file. */
const maximumDefinitionBytes = 64 * 1024
const maximumFiles = 200
const maximumEntries = 5_000
const maximumFolders = 100

type Parse<A> = (file: Frontmatter, stem: string) => Either.Either<A, ReadonlyArray<Issue>>

type CachedDefinition<A> = { readonly stamp: string; readonly definition: Definition<A> }

/** The names of the folder's definition files in code unit order, and whether the limits cut the list. */
const listing = async (folder: string) => {
  const names: Array<string> = []
  let seen = 0
  for await (const entry of await fs.opendir(folder)) {
    if (++seen > maximumEntries) break
    if (entry.name.endsWith(".md") && !entry.name.startsWith(".")) names.push(entry.name)
  }
  const sorted = names.sort()
  return { names: sorted.slice(0, maximumFiles), more: sorted.length > maximumFiles || seen > maximumEntries }
}

/** A cached reader. `within` is the canonical folder that must contain everything. */
const makeDefinitionFolders = <A>(parse: Parse<A>) => {
  const folders = new Map<string, ReadonlyMap<string, CachedDefinition<A>>>()

  const read = Effect.fnUntraced(function* (file: string, within: string | undefined) {
    const stem = path.basename(file, ".md")
    const content = yield* Effect.either(readText(file, { maxBytes: maximumDefinitionBytes, within }))
    const result = Either.flatMap(
      Either.mapLeft(content, ({ details }) => details),
      (text) =>
        Either.mapLeft(
          Either.flatMap(parseFrontmatter(text), (matter) => parse(matter, stem)),
          showIssues
        )
    )
    return { path: file, stem, result } satisfies Definition<A>
  })

  const inside = Effect.fnUntraced(function* (folder: string, within: string | undefined) {
    const real = yield* tryFile(folder, () => realpath(folder))
    if (within === undefined || isWithin(within, real)) return real
    const details = "it leads out of its project through a symbolic link"
    return yield* new TextFileError({ path: folder, reason: "refused", details })
  })

  const look = Effect.fnUntraced(function* (folder: string, within: string | undefined) {
    const real = yield* inside(folder, within)
    const { more, names } = yield* tryFile(folder, () => listing(real))
    const before = folders.get(folder)
    const now = new Map<string, CachedDefinition<A>>()
    for (const name of names) {
      const file = path.join(folder, name)
      const stamp = yield* Effect.either(
        tryFile(file, () => fs.stat(path.join(real, name), { bigint: true })).pipe(Effect.map(stampOf))
      )
      const kept = before?.get(name)
      if (kept !== undefined && Either.isRight(stamp) && kept.stamp === stamp.right) now.set(name, kept)
      else now.set(name, { stamp: Either.getOrElse(stamp, () => ""), definition: yield* read(file, within) })
    }
    folders.delete(folder)
    folders.set(folder, now)
    const [oldest] = folders.keys()
    if (folders.size > maximumFolders && oldest !== undefined) folders.delete(oldest)
    const definitions = [...now.values()].map(({ definition }) => definition)
    const details = `it holds more than ${maximumFiles} definition files, or ${maximumEntries} entries; the rest is ignored`
    return more ? [...definitions, { path: folder, stem: "", result: Either.left(details) }] : definitions
  })

  const orNothing = (folder: string) =>
    Effect.catchAll(({ details, reason }: TextFileError) =>
      Effect.succeed<ReadonlyArray<Definition<A>>>(
        reason === "missing" ? [] : [{ path: folder, stem: "", result: Either.left(details) }]
      )
    )

  return {
    /** The folder's definitions, by file name. A missing folder has none. */
    read: (folder: string, within?: string): Effect.Effect<ReadonlyArray<Definition<A>>> =>
      Effect.suspend(() => (isMissing(folder) ? Effect.succeed([]) : look(folder, within).pipe(orNothing(folder)))),
    /** The same files by name only: none is read, and each is rejected with the given reason. */
    refused: (folder: string, within: string, why: string): Effect.Effect<ReadonlyArray<Definition<A>>> =>
      inside(folder, within).pipe(
        Effect.flatMap((real) => tryFile(folder, () => listing(real))),
        Effect.map(({ names }) =>
          names.map((name) => ({
            path: path.join(folder, name),
            stem: path.basename(name, ".md"),
            result: Either.left(why)
          }))
        ),
        orNothing(folder)
      )
  }
}

/** A file that is unusable or only partly usable. */
export interface DefinitionProblem {
  readonly path: string
  readonly details: string
}

export interface DefinitionSources {
  /** The user's folder, which has the folder of this kind of file. Default: none. */
  readonly userFolder?: string | undefined
  /** Whether projects may add definitions; default: true. */
  readonly projectConfig?: boolean | undefined
}

/** The files of one kind: the user's, and those of a project's `.daybook`, which count only if the project is trusted. */
export const makeDefinitions = <A>(
  kind: "agents" | "templates",
  parse: Parse<A>,
  { projectConfig = true, userFolder }: DefinitionSources,
  trust: Trust
) => {
  const folders = makeDefinitionFolders(parse)
  const warn = warnOnce()
  const nothing: ReadonlyArray<Definition<A>> = []
  return {
    ofUser: userFolder === undefined ? Effect.succeed(nothing) : folders.read(path.join(userFolder, kind)),
    /** Nothing may lead out of the root of the project. */
    ofProject: Effect.fnUntraced(function* (location: Location | undefined) {
      if (location === undefined || !projectConfig) return nothing
      // A removed folder has no files either.
      const real = yield* Effect.orElseSucceed(
        Effect.tryPromise(() => realpath(location.directory)),
        () => path.resolve(location.directory)
      )
      const project = yield* projectAt(trust, real)
      const folder = path.join(project.root, ".daybook", kind)
      const why = notCounting(project)
      return yield* why === undefined ? folders.read(folder, project.root) : folders.refused(folder, project.root, why)
    }),
    warn: (problems: ReadonlyArray<DefinitionProblem>) =>
      Effect.forEach(problems, ({ details, path: file }) => warn(`${kind.slice(0, -1)} file ${file}: ${details}`), {
        discard: true
      })
  }
}
