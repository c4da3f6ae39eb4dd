/** Finds session logs: the files of paths, folders and patterns, and the folders where tools keep theirs. Spec: CL-221, CL-222. */
import { opendir, stat } from "node:fs/promises"
import { homedir } from "node:os"
import { join, resolve, sep } from "node:path"
import { Effect } from "effect"
import * as Glob from "@daybook/core/glob/Glob"
import { walk } from "@daybook/core/glob/Walk"
import { oneLine } from "../render/Plain.ts"
import { NotFound } from "../support/Errors.ts"

/** A log file. */
export interface Source {
  readonly path: string
  readonly bytes: number
  /** Milliseconds since the epoch. */
  readonly modified: number
}

/** The folders where the tools keep their logs. */
export const knownFolders = (home: string = homedir()): ReadonlyArray<readonly [tool: string, folder: string]> => [
  ["Claude Code", join(home, ".claude", "projects")],
  ["Codex", join(home, ".codex", "sessions")],
  ["Codex archive", join(home, ".codex", "archived_sessions")],
  ["pi", join(home, ".pi", "agent", "sessions")],
  ["omp", join(home, ".omp", "agent", "sessions")],
  ["xcsh", join(home, ".xcsh", "agent", "sessions")],
  ["threads", join(home, ".agent", "sessions")]
]

/** Early rollouts of Codex are one JSON object, and old ones compressed. */
const isLog = (name: string): boolean => /\.jsonl$|^rollout-.*\.json(?:l\.zst)?$/.test(name)

/** While Codex compresses a rollout or takes one out of its archive, both files exist. */
const isCopy = (path: string, paths: ReadonlySet<string>): boolean =>
  path.endsWith(".zst") && paths.has(path.slice(0, -".zst".length))

const sourceOf = async (path: string): Promise<Source> => {
  const { mtimeMs, size } = await stat(path)
  return { path, bytes: size, modified: mtimeMs }
}

/** The logs below a folder, by path. Symbolic links are not followed. */
const below = async (folder: string): Promise<ReadonlyArray<Source>> => {
  const paths = new Set<string>()
  for await (const entry of await opendir(folder, { recursive: true }))
    if (entry.isFile() && isLog(entry.name)) paths.add(join(entry.parentPath, entry.name))
  const sources: Array<Source> = []
  for (const path of [...paths].sort()) if (!isCopy(path, paths)) sources.push(await sourceOf(path))
  return sources
}

/** The files that a pattern names. */
const matching = async (pattern: string): Promise<ReadonlyArray<Source>> => {
  const parts = resolve(pattern).split(sep)
  const first = parts.findIndex(Glob.isGlob)
  const folder = parts.slice(0, first).join(sep) || sep
  const glob = Glob.compile(parts.slice(first).join("/"))
  if (glob === undefined) return []
  const { files } = await walk({
    folder,
    glob,
    signal: new AbortController().signal,
    most: Number.MAX_SAFE_INTEGER,
    skipped: new Set()
  })
  const sources: Array<Source> = []
  for (const file of files.toSorted()) sources.push(await sourceOf(join(folder, file)))
  return sources
}

const exists = (path: string) =>
  stat(path).then(
    (found) => found,
    () => undefined
  )

const found = async (path: string): Promise<ReadonlyArray<Source> | undefined> => {
  const given = await exists(path)
  if (given?.isDirectory() === true) return below(resolve(path))
  if (given !== undefined) return [await sourceOf(resolve(path))]
  return Glob.isGlob(path) ? matching(path) : undefined
}

const reasonOf = (cause: unknown): string =>
  cause instanceof Error && "code" in cause ? String(cause.code) : String(cause)

/** The logs of the paths, each once. */
export const find = Effect.fn("ImportSources.find")(function* (paths: ReadonlyArray<string>) {
  const sources = new Map<string, Source>()
  for (const path of paths) {
    const unread = (reason: string) => new NotFound({ message: `${oneLine(path, 400)}: ${reason}` })
    const logs = yield* Effect.tryPromise({ try: () => found(path), catch: (cause) => unread(reasonOf(cause)) })
    if (logs === undefined) return yield* unread("there is no such file or folder")
    if (logs.length === 0) return yield* unread("it holds no logs (*.jsonl, rollout-*.json, rollout-*.jsonl.zst)")
    for (const source of logs) sources.set(source.path, source)
  }
  return [...sources.values()]
})

/** The logs in the known folders. A folder that does not exist holds none. */
export const known = Effect.promise(() =>
  Promise.all(
    knownFolders().map(async ([tool, folder]) => ({ tool, folder, sources: await below(folder).catch(() => []) }))
  )
)
